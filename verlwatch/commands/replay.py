"""`verlwatch replay`: what the watcher would have said of a finished log."""

from __future__ import annotations

import argparse

from verlwatch.commands import _common
from verlwatch.commands._output import say, say_json
from verlwatch.core.engine import Engine
from verlwatch.core.types import Transition
from verlwatch.replay import replay
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch replay train.log
  verlwatch replay --json train.log | jq 'select(.event == "opened")'
  verlwatch replay train.log outputs/my_project/my_run.jsonl     (two views of one run)

Steps are judged as the live watcher judges them, with its settings where --config names them.  What depends on arrival
(how long a line was late, whether a process was alive) is not in a log and is not judged.  Exit code 0 with or without
findings, 1 when a file cannot be read, 2 when the configuration cannot be used.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "replay",
        help="what the watcher would have said of a finished log",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common.add_logs(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each change of an incident")
    parser.set_defaults(run_command=run)


@_common.on_logs
def run(args: argparse.Namespace) -> None:
    """Prints each change of each incident as it comes up."""
    count, engine, run = 0, Engine(_common.settings(args)), _common.run_name(args)
    with _common.bar() as progress:
        for outcome, _ in replay(engine, args.logs, run, progress):
            for transition in outcome.transitions:
                count += 1
                if args.json:
                    say_json(transition, flush=True)
                else:
                    say(printable(_line(transition)), flush=True)
    if not count and not args.json:
        steps = engine.runs[run].steps_seen if run in engine.runs else 0
        say(f"nothing found in {steps} steps with timing" + _common.too_few(steps))


def _line(t: Transition) -> str:
    how = f"closed ({t.closed_as})" if t.event == "closed" else t.event
    since = f"since step {t.onset_step}"
    return f"step {t.step:>6}  {how:<18} {t.phase:<13} ×{t.ratio:<6.2f} {since}  {t.severity}  {t.summary}"
