"""`verlwatch incidents`: what is open, and what keeps people from being told of it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from pydantic import TypeAdapter

from verlwatch import config as configuration
from verlwatch.commands import _daemon
from verlwatch.commands._output import say, say_json
from verlwatch.shell.printable import printable
from verlwatch.status import IncidentStatus

EPILOG = """examples:
  verlwatch incidents
  verlwatch incidents --all --json

Exit code 0 with or without incidents, 1 when the daemon cannot be asked.  It is found as by `verlwatch status`.
"""
INCIDENTS = "/api/v1/incidents"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "incidents",
        help="open incidents of a running daemon",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="the last closed ones, too")
    parser.add_argument("--json", action="store_true", help="as JSON")
    _daemon.add_arguments(parser)
    parser.set_defaults(run_command=_daemon.asking(_list))


def _list(args: argparse.Namespace, config: configuration.Config) -> int:
    _, body = _daemon.ask(args, config, INCIDENTS)
    found = TypeAdapter(tuple[IncidentStatus, ...]).validate_json(body)
    shown = [incident for incident in found if args.all or incident.state != "closed"]
    if args.json:
        say_json(shown)
        return 0
    for incident in shown:
        for line in _lines(incident):
            say(printable(line))
    if not shown:
        say("no incident is open")
    return 0


def _lines(incident: IncidentStatus) -> list[str]:
    state = incident.closed_as or incident.state
    opened = f"{datetime.fromtimestamp(incident.opened_at, UTC).astimezone():%Y-%m-%d %H:%M %z}"
    lines = [f"{incident.id}  {state:<9} {incident.severity:<8} {opened}  {incident.run}: {incident.summary}"]
    return [*lines, f"          not told: {incident.held}"] if incident.held else lines
