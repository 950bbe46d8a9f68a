"""What the command line can do: one file per command.

Each has ``add(subparsers)``, which declares its arguments, and ``run(args)``, which does the work and returns the exit
code: 0 for success, 1 for input that cannot be used (unreadable, refused), 2 for wrong usage or configuration.
"""
