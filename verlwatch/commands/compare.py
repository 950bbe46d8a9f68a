"""`verlwatch compare`: two runs, or two stretches of one, phase by phase at equal work."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verlwatch import report
from verlwatch.commands import _common, _logs
from verlwatch.commands._output import say, say_json
from verlwatch.commands.report import add_forms

EPILOG = """examples:
  verlwatch compare before.log after.log
  verlwatch compare train.log@50:150 train.log@200:300
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "compare",
        help="two runs, or two stretches of one, phase by phase at equal work",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    side = "log or Ray session; PATH@FIRST:LAST for some of its steps"
    parser.add_argument("a", metavar="A", help=side)
    parser.add_argument("b", metavar="B", help=side)
    parser.add_argument("--config", type=Path, metavar="FILE", help="judge as the daemon with this configuration does")
    add_forms(parser)
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the comparison."""
    try:
        args.sides = [_side(text) for text in (args.a, args.b)]
    except argparse.ArgumentTypeError as error:
        print(error, file=sys.stderr)
        return 2
    args.logs = [path for paths, _, _ in args.sides for path in paths]
    return _common.on_logs(_compare)(args)


def _side(text: str) -> tuple[tuple[Path, ...], str, _logs.Span | None]:
    """Files, name and steps of a side; a file whose name has an @ is taken as it is."""
    path, at, steps = text.rpartition("@")
    span = _logs.span(steps) if at and not Path(text).exists() else None
    files, name = _logs.resolved([Path(text if span is None else path)])
    return tuple(files), name or files[0].stem, span


def _compare(args: argparse.Namespace) -> None:
    words, settings = report.Words(args.language), _common.settings(args)
    readings: dict[tuple[Path, ...], report.Reading] = {}
    with _common.bar() as progress:
        for paths, name, _ in args.sides:
            if paths not in readings:
                readings[paths] = report.read(paths, name, settings, progress)
    a, b = ((readings[paths], span) for paths, _, span in args.sides)
    found = report.compare(a, b, words)
    if args.json:
        say_json(report.as_json(found))
    elif args.markdown:
        say(report.versus_markdown(found, words), end="")
    else:
        say(report.versus(found, words), end="")
