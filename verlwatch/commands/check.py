"""`verlwatch check`: everything that is wrong with a configuration, at once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verlwatch import config as configuration
from verlwatch.commands._output import say
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch check --config verlwatch.yaml

Prints FILE:LINE:COLUMN: KEY: what is wrong; what to do.  Exit code 0 when the daemon would start with it (warnings
included), 2 when it would not.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "check",
        help="check a configuration file",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (default: the one run would take)"
    )
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the problems, or that there are none."""
    path: Path | None = args.config or configuration.find()
    if path is None:
        print("no configuration file found; give --config FILE", file=sys.stderr)
        return 2
    problems = configuration.check(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    if any(problem.severity == "error" for problem in problems):
        return 2
    say(f"{printable(str(path))}: good")
    return 0
