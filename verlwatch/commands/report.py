"""`verlwatch report`: where the time of a finished or running log went, since when, why, and what to try."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from verlwatch import report
from verlwatch.commands import _common, _logs
from verlwatch.commands._output import say, say_json
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch report train.log
  verlwatch report --last 50 --steps 100:400 train.log
  verlwatch report --html report.html train.log
  verlwatch report --language zh /tmp/ray/session_latest
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "report",
        help="where the time of a log goes, since when, why, and what to try",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common.add_logs(parser)
    parser.add_argument("--last", type=_count, default=20, metavar="N", help="steps in the table (default 20)")
    parser.add_argument("--steps", type=_logs.span, metavar="A:B", help="report on these steps only, both in it")
    add_forms(parser)
    parser.add_argument("--csv", type=Path, metavar="FOLDER", help="write all series as CSV files into this folder")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file")
    parser.set_defaults(run_command=run)


def add_forms(parser: argparse.ArgumentParser) -> None:
    """Arguments of what prints a report."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument("--json", action="store_true", help="print JSON (see docs/REPORT.md)")
    parser.add_argument("--language", choices=("en", "zh"), default="en", help="of the report (default en)")


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number of steps; give 1 to 999999999")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the report."""
    args.logs, name = _logs.resolved(args.logs)
    args.run = args.run or name or None
    return _common.on_logs(_report)(args) or args.failed


def _report(args: argparse.Namespace) -> None:
    args.failed = 0
    words = report.Words(args.language)
    with _common.bar() as progress:
        reading = report.read(args.logs, _common.run_name(args), _common.settings(args), progress)
    model = report.build(reading, words, args.steps)
    if args.json:
        say_json(report.as_json(model))
    elif args.markdown:
        say(report.markdown(model, words, args.last), end="")
    elif args.csv is None and args.html is None:
        say(report.terminal(model, words, args.last), end="")
    try:
        if args.csv is not None:
            report.write_csv(args.csv, reading, model.steps)
        if args.html is not None:
            from verlwatch.report.html import render  # noqa: PLC0415 - its charts are needed for this alone

            args.html.write_text(render(model), encoding="utf-8")
    except OSError as error:
        print(printable(f"{error.filename}: {error.strerror}"), file=sys.stderr)
        args.failed = 1
