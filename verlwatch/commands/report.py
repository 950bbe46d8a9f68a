"""`verlwatch report`: where the time of a finished or running log went, and what changed."""

from __future__ import annotations

import argparse
import re

from verlwatch import report
from verlwatch.commands import _common
from verlwatch.commands._output import say
from verlwatch.core.engine import Engine

EPILOG = """examples:
  verlwatch report train.log
  verlwatch report --last 50 train.log
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "report",
        help="table of the last steps of a log, and every change in it",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common.add_logs(parser)
    parser.add_argument("--last", type=_count, default=20, metavar="N", help="steps in the table (default 20)")
    parser.set_defaults(run_command=run)


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number of steps; give 1 to 999999999")
    return int(text)


@_common.on_logs
def run(args: argparse.Namespace) -> None:
    """Prints the report."""
    engine = Engine(_common.settings(args))
    with _common.bar() as progress:
        history = report.read(args.logs, _common.run_name(args), engine, progress)
    say(report.render(history, args.last), end="")
