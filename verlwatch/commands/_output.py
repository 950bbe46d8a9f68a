"""Standard output as it may be: closed, full, or unable to show a character."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson


class OutputError(Exception):
    """Standard output does not take what is printed.  ``gone``: its reader has left, as `head` does."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {error.strerror}")
        self.gone = isinstance(error, BrokenPipeError)


def prepare() -> None:
    """From here on a character that the terminal or the file cannot hold is printed as ``?``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def say(text: str = "", *, end: str = "\n", flush: bool = False) -> None:
    """Prints a text.

    Raises:
        OutputError: it cannot be written.
    """
    with _taken():
        print(text, end=end, flush=flush)


def say_json(value: Any, option: int = 0, *, flush: bool = False) -> None:
    """Prints JSON and a newline, in UTF-8 whatever the terminal's own encoding is; not to be mixed with `say`.

    Raises:
        OutputError: it cannot be written.
    """
    if sys.stdout is None:  # closed by whoever started this
        return
    with _taken():
        sys.stdout.buffer.write(orjson.dumps(value, option=option | orjson.OPT_APPEND_NEWLINE))
        if flush:
            sys.stdout.flush()


def flush() -> None:
    """Hands on what is still held.

    Raises:
        OutputError: it cannot be written.
    """
    if sys.stdout is not None:
        with _taken():
            sys.stdout.flush()


def discard() -> None:
    """Lets nothing more be written: what is still held would fail again, with a traceback, when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _taken() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error) from None
