"""`verlwatch run`: the daemon."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from verlwatch import config as configuration
from verlwatch.config import Config, ConfigError

EPILOG = """examples:
  verlwatch run --log train.log --slack-webhook-file ~/.slack-webhook       no configuration file needed
  verlwatch run --log '/data/run7/*.log' --log run7.jsonl --run-name run7   several files of one run
  verlwatch run --config verlwatch.yaml                                     everything

Without --config and --log the file is looked for in $VERLWATCH_CONFIG, ./verlwatch.yaml,
$XDG_CONFIG_HOME/verlwatch/verlwatch.yaml and /etc/verlwatch/verlwatch.yaml.  A flag wins over its VERLWATCH_* variable,
that over the file.  SIGHUP reloads the file, SIGTERM or Ctrl-C stops; what is not delivered by then is delivered after
the next start.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "run",
        help="watch logs and tell people",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument(
        "--log", action="append", metavar="LOG", help="log or glob of the run to watch; may be repeated"
    )
    parser.add_argument("--run-name", metavar="NAME", help="name of that run (default: name of the first log)")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        help="what to do with what the log holds already: last-run (default; learns from it, tells what still holds), "
        "beginning (tells it all), end (leaves it out)",
    )
    parser.add_argument("--slack-webhook-file", metavar="FILE", help="file that holds a Slack incoming webhook's URL")
    parser.add_argument("--webhook-url", metavar="URL", help="send JSON notifications there")
    settings = parser.add_argument_group("settings of the configuration file", "see docs/CONFIG.md")
    for name, path in configuration.OVERRIDES.items():
        settings.add_argument(configuration.flag(name), dest=name, metavar="VALUE", help=".".join(path))
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Runs until stopped; 2 with every problem listed when the configuration is bad."""
    path: Path | None = args.config or (None if args.log else configuration.find())
    read = _reader(path, vars(args))
    try:
        config = read()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return _serve(config, path, read)


def _reader(path: Path | None, flags: dict[str, object]) -> Callable[[], Config]:
    """Reads the configuration as it is now: at start and at every reload."""

    def read() -> Config:
        base = configuration.load(path) if path is not None else Config()
        return configuration.watched(configuration.apply(base, os.environ, flags))

    return read


def _serve(config: Config, path: Path | None, read: Callable[[], Config]) -> int:
    # the daemon's parts are imported here: `verlwatch report` needs no HTTP server
    from verlwatch.app import App, StartError, StateLost  # noqa: PLC0415

    try:
        asyncio.run(App(config, str(path) if path else None, read, port_chosen=not config.http.listen_is_default).run())
    except StartError as error:
        print(f"verlwatch cannot start: {error}", file=sys.stderr)
        return 1
    except StateLost as error:
        print(f"verlwatch has stopped: {error}", file=sys.stderr)
        return 1
    return 0
