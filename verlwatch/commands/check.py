"""`verlwatch check`: everything that is wrong with a configuration, at once; and what its own lines find in a log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verlwatch import config as configuration
from verlwatch.commands import _common, _sample
from verlwatch.commands._output import say
from verlwatch.core.rules.memory_divergence import TURN_ON
from verlwatch.replay import LogError
from verlwatch.shell.gpu import SOURCES, SourceError, sampled
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch check --config verlwatch.yaml
  verlwatch check --config verlwatch.yaml --sample train.log

Prints FILE:LINE:COLUMN: KEY: what is wrong; what to do.  Where nothing is, it says what this host's GPUs would be read
with.  Exit code 0 when the daemon would start with it (warnings included), 2 when it would not.

With --sample it shows instead what the patterns of `lines` match in a log, and what is read of it.  Exit code 0 when
each reads something, 1 when one does not or the log cannot be read, 2 when the configuration cannot be.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "check",
        help="check a configuration file",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (default: the one run would take)"
    )
    parser.add_argument(
        "--sample", type=Path, metavar="LOG", help="show what the patterns of `lines` match in a log, and what is read"
    )
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the problems, or that there are none."""
    path: Path | None = args.config or configuration.find()
    if path is None:
        print("no configuration file found; give --config FILE", file=sys.stderr)
        return 2
    if args.sample is not None:
        return _on_sample(path, args.sample)
    problems = configuration.check(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    if any(problem.severity == "error" for problem in problems):
        return 2
    say(f"{printable(str(path))}: good")
    say(printable(_gpus(configuration.load(path))))
    return 0


def _gpus(config: configuration.Config) -> str:
    """What this host's GPUs would be read with, if with anything."""
    wanted = config.gpu.source
    more = f", {len(config.gpu.urls)} exporters besides" if config.gpu.urls else ""
    if wanted == "off":
        return f"GPUs of this host: not sampled (gpu.source is off){more}"
    try:
        seen = sampled([kind for kind in SOURCES if wanted in {"auto", kind.NAME}])
    except SourceError as error:
        return f"GPUs of this host: none seen ({error}){more}; where none is seen, ranks cannot be compared. {TURN_ON}"
    count = len(seen.sample.cards)
    return f"GPUs of this host: {count} {'card' if count == 1 else 'cards'} by {seen.source}{more}"


def _on_sample(config: Path, log: Path) -> int:
    if problems := _common.unreadable([log]):
        print("\n".join(problems), file=sys.stderr)
        return 1
    try:
        loaded = configuration.load(config)
        return int(not _sample.show(log, configuration.own_lines(loaded), loaded.reading.line_limit))
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except LogError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
