"""`verlwatch silence`: what people do not want to be told for a while."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

import orjson
from pydantic import TypeAdapter

from verlwatch import config as configuration
from verlwatch.commands import _daemon
from verlwatch.commands._output import say, say_json
from verlwatch.shell.http.changes import PATTERNS, SILENCES
from verlwatch.shell.printable import printable
from verlwatch.status import SilenceStatus

EPILOG = """examples:
  verlwatch silence add --run my-run --phase gen --for 2h --comment "known: shared node"
  verlwatch silence add --run 'prod-*' --rule phase_spike --for 1d
  verlwatch silence add --run my-run        (until the run ends)
  verlwatch silence list
  verlwatch silence remove s1a2b3c4

Patterns hold *, ? and […].  Incidents go on while they are silenced: the page shows them, and what still holds when
the silence ends is told then.  What opened and ended meanwhile is not told.

The daemon is found as by `verlwatch status`.
"""
_HELP = {
    "run": "runs that fit",
    "rule": "rules that fit, such as phase_spike",
    "phase": "phases that fit, such as gen",
    "host": "hosts that fit, of what is said of hosts",
    "rank": "ranks that fit, of what is said of ranks",
}


class _Verb(argparse.ArgumentParser):
    """Says of a time that is taken for an option what a time looks like."""

    def error(self, message: str) -> NoReturn:
        """Ends the program."""
        form = (
            "; a time is a number with a unit, such as 2h or 30m, and not negative"
            if "argument --for" in message
            else ""
        )
        super().error(f"{message}{form}")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "silence",
        help="do not be told of something for a while",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="add|list|remove", required=True, parser_class=_Verb)
    adding = verbs.add_parser("add", help="silence incidents that fit")
    for name in PATTERNS:
        adding.add_argument(f"--{name}", metavar="PATTERN", help=_HELP[name])
    adding.add_argument(
        "--for", dest="lasts", metavar="TIME", help="how long, for example 2h (default: until the runs end)"
    )
    adding.add_argument("--comment", metavar="TEXT", help="why")
    adding.add_argument("--author", metavar="NAME", help="who (default: the user)")
    listing = verbs.add_parser("list", help="the silences in force")
    listing.add_argument("--json", action="store_true", help="as JSON")
    removing = verbs.add_parser("remove", help="end a silence; what it held back and still holds is told")
    removing.add_argument("id", metavar="ID", help="id of the silence")
    for verb, what in ((adding, _add), (listing, _list), (removing, _remove)):
        _daemon.add_arguments(verb)
        verb.set_defaults(run_command=_daemon.asking(what))


def _add(args: argparse.Namespace, config: configuration.Config) -> int:
    asked = {name: getattr(args, name) for name in PATTERNS}
    asked |= {"for": args.lasts, "comment": args.comment, "author": args.author or _user()}
    _, body = _daemon.ask(args, config, SILENCES, {key: value for key, value in asked.items() if value is not None})
    say(printable(line(TypeAdapter(SilenceStatus).validate_json(body))))
    say(printable(_covers(orjson.loads(body).get("covers"))))
    return 0


def _list(args: argparse.Namespace, config: configuration.Config) -> int:
    _, body = _daemon.ask(args, config, SILENCES)
    silences = TypeAdapter(tuple[SilenceStatus, ...]).validate_json(body)
    if args.json:
        say_json(silences)
        return 0
    for silence in sorted(silences, key=lambda one: one.starts_at):
        say(printable(line(silence)))
    if not silences:
        say("nothing is silenced")
    return 0


def _remove(args: argparse.Namespace, config: configuration.Config) -> int:
    _daemon.ask(args, config, f"{SILENCES}/{_daemon.key(args.id, 'a silence')}", method="DELETE")
    say(printable(f"{args.id} removed; what it held back and still holds is told now"))
    return 0


def _covers(covers: Mapping[str, Any] | None) -> str:
    """What a silence holds back at present."""
    if not covers or not (runs := covers["runs"]):
        return "covers no run at present" if covers else "it is not known what it covers"
    named = f"run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs"
    count = covers["incidents"]
    return f"covers {named}: {count or 'no'} open incident{'' if count == 1 else 's'}"


def line(silence: SilenceStatus) -> str:
    """A silence as a person reads it."""
    patterns = ((name, getattr(silence, name)) for name in PATTERNS)
    what = ", ".join(f"{name} {pattern}" for name, pattern in patterns if pattern != "*")
    until = "until the runs end" if silence.ends_at is None else f"until {_time(silence.ends_at)}"
    who = f", by {silence.author}" if silence.author else ""
    return f"{silence.id}  {what}  {until}{who}" + (f": {silence.comment}" if silence.comment else "")


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M:%S %z}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user is known here
        return ""
