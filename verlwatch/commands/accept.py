"""`verlwatch accept`: nobody is told of an incident again unless it grows."""

from __future__ import annotations

import argparse

from verlwatch import config as configuration
from verlwatch.commands import _daemon
from verlwatch.commands._output import say
from verlwatch.core.incidents import MOVED
from verlwatch.shell.http.changes import ACCEPT
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch incidents
  verlwatch accept 877854eb

The incident is closed as accepted by a person, and it is not told again unless it grows by 25 %.  No baseline moves by
that: once the phase has been back to normal, the same change is told again.  After 200 steps
(detection.accept_after_steps) the new level is the baseline, as it would be without a word.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "accept",
        help="hear no more of an incident unless it grows",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID", help="id of the incident, as it stands in every message of it")
    _daemon.add_arguments(parser)
    parser.set_defaults(run_command=_daemon.asking(_accept))


def _accept(args: argparse.Namespace, config: configuration.Config) -> int:
    _daemon.ask(args, config, ACCEPT.format(id=_daemon.key(args.id, "an incident")), {})
    until = f"unless it grows by {MOVED - 1:.0%}, or comes again once it has been back to normal"
    say(printable(f"{args.id} accepted: not told again {until}"))
    return 0
