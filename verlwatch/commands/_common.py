"""What commands on whole logs share: their arguments and settings, and a bar for files that take their time."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from verlwatch import config as configuration
from verlwatch.config import Config, ConfigError
from verlwatch.core.settings import Settings
from verlwatch.replay import LogError, Progress
from verlwatch.report import JUDGED_FROM
from verlwatch.shell.printable import encodable, printable

_PATIENCE_S = 1.0
_CELLS = 30


def on_logs(work: Callable[[argparse.Namespace], None]) -> Callable[[argparse.Namespace], int]:
    """A command that reads ``args.logs``: what it cannot read or be configured with is told and gives its exit code."""

    def run(args: argparse.Namespace) -> int:
        if problems := unreadable(args.logs):
            print("\n".join(problems), file=sys.stderr)
            return 1
        try:
            work(args)
        except LogError as error:
            print(printable(str(error)), file=sys.stderr)
            return 1
        except ConfigError as error:
            print(error, file=sys.stderr)
            return 2
        return 0

    return run


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Arguments of a command that reads whole logs of one run."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="log of one run; several are read as one run")
    parser.add_argument("--run", metavar="NAME", help="name of the run (default: name of the first file)")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="judge as the daemon with this configuration does (default: built in)",
    )


def settings(args: argparse.Namespace) -> Settings:
    """What `verlwatch run` would judge with: the file, where one is given, and the VERLWATCH_* variables over it.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    return configuration.settings(configured(args))


def configured(args: argparse.Namespace) -> Config:
    """What `verlwatch run` would be configured with.  Raises ConfigError."""
    base = configuration.load(args.config) if args.config else Config()
    return configuration.apply(base, os.environ, {})


def run_name(args: argparse.Namespace) -> str:
    """The run's name as given, else the first file's name without its ending, and without .gz."""
    first: Path = args.logs[0]
    return encodable(args.run or (Path(first.stem) if first.suffix == ".gz" else first).stem)


def too_few(steps: int) -> str:
    """What to add where a log is too short for a judgement; empty where it is not."""
    return "" if steps >= JUDGED_FROM else f": too few, nothing is told before about the {JUDGED_FROM}th step"


def unreadable(paths: Sequence[Path]) -> list[str]:
    """Why the paths that cannot be read cannot, one sentence each."""
    problems = []
    for path in paths:
        try:
            if not path.is_file():
                problems.append(f"{path}: {_what_else(path)}")
                continue
            with path.open("rb"):
                pass
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    return [printable(problem) for problem in problems]


def _what_else(path: Path) -> str:
    if path.is_dir():
        return "is a directory; name its files"
    return "is no regular file; write what it yields into one" if path.exists() else "no such file"


@contextmanager
def bar() -> Iterator[Progress | None]:
    """A progress bar on standard error once the work has taken a second; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown = False

    def show(done: int, total: int) -> None:
        nonlocal shown
        spent = time.monotonic() - began
        if spent < _PATIENCE_S or not total:
            return
        shown = True
        full = _CELLS * done // total
        rate = done / spent / 1e6
        print(  # the bar is overwritten in place and erased at the end
            f"\r{'█' * full}{'·' * (_CELLS - full)} {done / total:4.0%}  {rate:.0f} MB/s",
            end="",
            file=sys.stderr,
            flush=True,
        )

    try:
        yield show
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
