"""`verlwatch agent`: reads this host's logs for a hub."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verlwatch.commands import run as run_command
from verlwatch.config import Config

EPILOG = """examples:
  verlwatch agent --hub https://hub.example.org:9878 --token-file token --log '/data/run7/*.log' --run-name run7
  verlwatch agent --config verlwatch.yaml       the same from a file with a section `agent`

Logs that are to be one run on the hub must have the same run name on every host.  What the hub has not taken yet is
kept, also over restarts of either.  Every setting of `verlwatch run` holds here too (--state-dir, --http-listen ...).
"""

_OWN = {"hub": "agent_hub", "token_file": "agent_token_file", "name": "agent_name", "ca": "agent_ca"}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "agent",
        help="read this host's logs for a hub",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hub", metavar="URL", help="the hub")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token that the hub has for this agent")
    parser.add_argument(
        "--name", metavar="NAME", help="name under which the hub knows this agent (default: the host's)"
    )
    parser.add_argument("--ca", metavar="FILE", help="certificate (PEM) of the authority that signed the hub's")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument("--log", action="append", metavar="LOG", help="log or glob to read; may be repeated")
    parser.add_argument("--run-name", metavar="NAME", help="the run they tell of (default: name of the first log)")
    run_command.add_start(parser)
    run_command.add_settings(parser, but=_OWN.values())
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """As `verlwatch run`, in the role of an agent."""
    flags = {_OWN.get(name, name): value for name, value in vars(args).items()}
    return run_command.run_with(args.config, flags, is_usable=_has_a_hub)


def _has_a_hub(config: Config) -> bool:
    if config.agent.hub is None:
        print("an agent needs a hub: give --hub URL and --token-file FILE, or set agent.hub", file=sys.stderr)
    return config.agent.hub is not None
