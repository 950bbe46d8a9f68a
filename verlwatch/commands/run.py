"""`verlwatch run`: the daemon."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Collection
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
    add_start(parser)
    parser.add_argument("--slack-webhook-file", metavar="FILE", help="file that holds a Slack incoming webhook's URL")
    parser.add_argument("--webhook-url", metavar="URL", help="send JSON notifications there")
    add_settings(parser)
    parser.set_defaults(run_command=run)


def add_start(parser: argparse.ArgumentParser) -> None:
    """Declares --from."""
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        help="what to do with what the log holds already: last-run (default; learns from it, tells what still holds), "
        "beginning (tells it all), end (leaves it out)",
    )


def add_settings(parser: argparse.ArgumentParser, but: Collection[str] = ()) -> None:
    """Declares a flag for every setting that is a single value, but for these overrides."""
    settings = parser.add_argument_group("settings of the configuration file", "see docs/CONFIG.md")
    for name, path in configuration.OVERRIDES.items():
        if name not in but:
            settings.add_argument(configuration.flag(name), dest=name, metavar="VALUE", help=".".join(path))


def run(args: argparse.Namespace) -> int:
    """Runs until stopped; 2 with every problem listed when the configuration is bad."""
    return run_with(args.config, vars(args))


def run_with(given: Path | None, flags: dict[str, object], is_usable: Callable[[Config], bool] = bool) -> int:
    """Runs with the configuration at ``given``, or the one that is found where no log is named, under ``flags``."""
    path = given or (None if flags.get("log") else configuration.find())
    read = _reader(path, flags)
    try:
        config = read()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return _serve(config, path, read) if is_usable(config) else 2


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
