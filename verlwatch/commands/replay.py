"""`verlwatch replay`: what the watcher would have said of a finished log."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from verlwatch import timeline
from verlwatch.commands import _common
from verlwatch.commands._output import say, say_json
from verlwatch.core.engine import Engine
from verlwatch.core.incidents import duration
from verlwatch.core.settings import Settings
from verlwatch.core.types import Language, Message, Outcome, Transition
from verlwatch.replay import Passage, Progress, replay
from verlwatch.shell.notifiers import in_language, message_text
from verlwatch.shell.printable import printable

NOBODY = "nobody"

EPILOG = """examples:
  verlwatch replay train.log
  verlwatch replay --json train.log | jq 'select(.event == "opened")'
  verlwatch replay train.log outputs/my_project/my_run.jsonl     (two views of one run)
  verlwatch replay --notify-dry-run train.log                    (the messages, as they would be read)

Steps are judged as the live watcher judges them, with its settings where --config names them.  What depends on arrival
(how long a line was late, whether a process was alive) is not in a log and is not judged; quiet hours, maintenance and
silences are left out of --notify-dry-run, and its clock is the sum of the step times.  Exit code 0 with or without
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
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object a line for each change of an incident")
    form.add_argument(
        "--notify-dry-run", action="store_true", help="the messages that people would have got; nobody is told"
    )
    parser.add_argument(
        "--timeline",
        type=Path,
        metavar="FILE",
        help="when each line arrived, so that stalls, silence and deaths are judged too (see docs/LIFE.md)",
    )
    parser.set_defaults(run_command=run)


@_common.on_logs
def run(args: argparse.Namespace) -> None:
    """Prints each change of each incident, or each message, as it comes up."""
    count, engine, run = 0, Engine(_settings(args)), _common.run_name(args)
    languages = {receiver.name: receiver.language for receiver in _common.configured(args).receivers}
    with _common.bar() as progress:
        for outcome, now in _passages(args, engine, run, progress):
            if args.notify_dry_run:
                count += _show_messages(outcome, now, languages)
            else:
                count += _show_changes(outcome, as_json=args.json)
    if not count and not args.json:
        steps = engine.runs[run].steps_seen if run in engine.runs else 0
        say(f"nothing found in {steps} steps with timing" + _common.too_few(steps))


def _passages(args: argparse.Namespace, engine: Engine, run: str, progress: Progress | None) -> Iterator[Passage]:
    if args.timeline is None:
        return replay(engine, args.logs, run, progress)
    return timeline.replay(engine, args.logs, run, timeline.read(args.timeline))


def _settings(args: argparse.Namespace) -> Settings:
    """As configured; what depends on the time of day is left out, and where nobody is told somebody is."""
    settings = _common.settings(args)
    return replace(settings, quiet_hours=(), maintenance=(), receivers=settings.receivers or (NOBODY,))


def _show_changes(outcome: Outcome, *, as_json: bool) -> int:
    for transition in outcome.transitions:
        if as_json:
            say_json(transition, flush=True)
        else:
            say(printable(_line(transition)), flush=True)
    return len(outcome.transitions)


def _show_messages(outcome: Outcome, now: float, languages: Mapping[str, Language]) -> int:
    """Each message once in each language that it is read in, with all who get it; ``languages`` by receiver."""
    receivers: dict[tuple[str, Language], list[str]] = {}
    messages: dict[tuple[str, Language], Message] = {}
    for notification in outcome.notifications:
        language = languages.get(notification.receiver, "en")
        key = notification.dedup_key, language
        receivers.setdefault(key, []).append(notification.receiver)
        messages[key] = in_language(notification.message, language)
    for key, message in messages.items():
        names = ", ".join(name for name in receivers[key] if name != NOBODY)
        head = f"after {duration(now)} of training" + (f", to {names}" if names else "")
        say("\n".join(map(printable, (head, *message_text(message, None).splitlines(), ""))), flush=True)
    return len(messages)


def _line(t: Transition) -> str:
    how = f"closed ({t.closed_as})" if t.event == "closed" else t.event
    if t.title:
        return f"step {t.step:>6}  {how:<18} {t.severity}  {t.title}"
    since = f"since step {t.onset_step}"
    return f"step {t.step:>6}  {how:<18} {t.phase:<13} ×{t.ratio:<6.2f} {since}  {t.severity}  {t.summary}"
