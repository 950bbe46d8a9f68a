"""`verlwatch run`: the daemon."""

from __future__ import annotations

import argparse
import asyncio
import glob
import os
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePath

from verlwatch import config as configuration
from verlwatch.config import Config, ConfigError
from verlwatch.shell._ray import is_log
from verlwatch.shell.printable import printable, shortened
from verlwatch.shell.run_names import NAME_LIMIT
from verlwatch.shell.survey import ENDINGS

EPILOG = """examples:
  verlwatch run --log train.log --slack-webhook-file ~/.slack-webhook       no configuration file needed
  verlwatch run --log '/data/run7/*.log' --log run7.jsonl --run-name run7   several files of one run
  verlwatch run --pid 4711                                                  the file that process 4711 writes to
  verlwatch run --config verlwatch.yaml                                     everything

Without --config, --log and --pid the file is looked for in $VERLWATCH_CONFIG, ./verlwatch.yaml,
$XDG_CONFIG_HOME/verlwatch/verlwatch.yaml and /etc/verlwatch/verlwatch.yaml.  A flag wins over its VERLWATCH_* variable,
that over the file.  SIGHUP reloads the file, SIGTERM or Ctrl-C stops; what is not delivered by then is delivered after
the next start.
"""

_NO_BRACES = str.maketrans("{}", "()")  # what stands in braces in a name is a placeholder


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
    parser.add_argument(
        "--pid",
        type=int,
        metavar="PID",
        help="process on this host to watch, too; without --log its standard output and error are the log",
    )
    add_run(parser)
    add_receivers(parser)
    add_settings(parser)
    parser.set_defaults(run_command=run)


def add_run(parser: argparse.ArgumentParser, default: str = "name of the first log") -> None:
    """Declares what describes the one run that is watched."""
    parser.add_argument("--run-name", metavar="NAME", help=f"name of that run (default: {default})")
    add_start(parser)
    parser.add_argument(
        "--wall-limit", metavar="TIME", help="how long the run may take from its start, for example 24h (default: any)"
    )


def add_receivers(parser: argparse.ArgumentParser) -> None:
    """Declares who is told without a configuration file."""
    parser.add_argument("--slack-webhook-file", metavar="FILE", help="file that holds a Slack incoming webhook's URL")
    parser.add_argument("--webhook-url", metavar="URL", help="send JSON notifications there")


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
    flags = vars(args)
    if args.pid is not None and not args.log:
        # only who asks for it looks into processes
        from verlwatch.shell._outputs import NoOutput, outputs  # noqa: PLC0415

        try:
            files = outputs(args.pid)
        except NoOutput as error:
            print(error, file=sys.stderr)
            return 1
        print(printable(f"process {args.pid}: watching {', '.join(files)}"), file=sys.stderr)
        flags |= {"log": literally(files), "run_name": args.run_name or run_name(files[0])}
    return run_with(args.config, flags)


def literally(files: Sequence[str]) -> list[str]:
    """Patterns that stand for these files alone, whatever characters are in their names."""
    return [glob.escape(file) for file in files]


def run_name(text: str) -> str:
    """A name for a run after a file, or any text: of a Ray worker's log that of its session."""
    path = PurePath(text)
    if is_log(path.name) and path.parent.name == "logs":
        path = path.parent.parent
    stem = path.stem if path.suffix in ENDINGS else path.name
    return shortened(stem.translate(_NO_BRACES), NAME_LIMIT) or "run"


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
