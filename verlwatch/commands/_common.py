"""What several commands share: arguments for logs, and a bar for files that take their time."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from verlwatch.replay import Progress

_PATIENCE_S = 1.0
_CELLS = 30


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Arguments of a command that reads whole logs of one run."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="log of one run; several are read as one run")
    parser.add_argument("--run", metavar="NAME", help="name of the run (default: name of the first file)")


def run_name(args: argparse.Namespace) -> str:
    """The run's name as given, else the first file's name without its endings."""
    first: Path = args.logs[0]
    return args.run or first.name.split(".gz")[0].rsplit(".", 1)[0] or first.name


def unreadable(paths: Sequence[Path]) -> list[str]:
    """Why the paths that cannot be read cannot, one sentence each."""
    problems = []
    for path in paths:
        try:
            if not path.is_file():
                kind = "is a directory; name its files" if path.is_dir() else "no such file"
                problems.append(f"{path}: {kind}")
                continue
            with path.open("rb"):
                pass
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    return problems


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
