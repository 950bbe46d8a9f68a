"""The command line: parses arguments and hands them to one command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from verlwatch import __version__
from verlwatch.commands import _output

COMMANDS = (
    *("init", "run", "attach", "agent", "demo", "replay", "report", "compare", "parse", "check"),
    *("status", "gpus", "incidents", "silence", "accept", "outbox", "test_notify"),
)
"""Modules of verlwatch.commands, in the order of --help."""

EPILOG = """examples:
  verlwatch run --log train.log --slack-webhook-file ~/.slack-webhook
  verlwatch report train.log
  verlwatch demo

`verlwatch COMMAND --help` tells more.
"""


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """The whole command line; where it is known already which ``command`` is meant, no other one is loaded."""
    named = command.replace("-", "_") if "_" not in command else ""
    parser = argparse.ArgumentParser(
        prog="verlwatch",
        description="Watches verl training runs from outside: what changed, since which step, and whom to tell.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"verlwatch {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in (named,) if named in COMMANDS else COMMANDS:
        import_module(f"verlwatch.commands.{name}").add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    _output.prepare()
    try:
        try:
            given = sys.argv[1:] if argv is None else argv
            args = build_parser(given[0] if given else "").parse_args(given)
            code: int = args.run_command(args)
        finally:
            _output.flush()
    except _output.OutputError as error:
        _output.discard()
        if error.gone:
            return 0
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code
