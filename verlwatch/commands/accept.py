"""`verlwatch accept`: what an incident tells of is the normal case from now on."""

from __future__ import annotations

import argparse

from verlwatch import config as configuration
from verlwatch.commands import _daemon
from verlwatch.commands._output import say
from verlwatch.shell.http.changes import ACCEPT
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch incidents
  verlwatch accept 877854eb

The incident is closed as accepted, and nothing is told of the same change again unless it grows by a quarter.  After
200 steps (detection.accept_after_steps) the new level is the baseline, as it would be without a word.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "accept",
        help="take the new level of an incident for the normal one",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID", help="id of the incident, as it stands in every message of it")
    _daemon.add_arguments(parser)
    parser.set_defaults(run_command=_daemon.asking(_accept))


def _accept(args: argparse.Namespace, config: configuration.Config) -> int:
    _daemon.ask(args, config, ACCEPT.format(id=_daemon.segment(args.id)), {})
    say(printable(f"{args.id} accepted: its level is the normal one now"))
    return 0
