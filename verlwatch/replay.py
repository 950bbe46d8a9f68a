"""Finished logs through the same core: same bytes in, same findings out.

A log read after the fact has no arrival times.  Its clock is the running sum of its own step times, so `now` here is
seconds since the first step.  Files given together are one run; they are read side by side, a piece of each in turn, as
their writers wrote them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from verlwatch.core import steps
from verlwatch.core.engine import Engine
from verlwatch.core.phases import STEP
from verlwatch.core.types import Chunk, Outcome, StepRow

PIECE = 1 << 16
Progress = Callable[[int, int], None]


class LogError(Exception):
    """A log cannot be read to its end; the text says which and why."""


class Passage(NamedTuple):
    """What one piece of the input caused, and the replay's clock after it (seconds of training)."""

    outcome: Outcome
    now: float


def replay(
    engine: Engine, paths: Sequence[Path], run: str, progress: Progress | None = None, *, piece: int = 0
) -> Iterator[Passage]:
    """Feeds whole files to ``engine`` and yields what they cause.

    ``progress`` is called with (bytes read, bytes in all).  ``piece`` is how many bytes are fed at once, PIECE
    if 0: the engine writes its state after each, which a long log need not do so often.

    Raises:
        LogError: a file cannot be read to its end.
    """
    engine.is_timed = False
    unread = {str(path): pieces(path, piece or PIECE) for path in paths}
    total = sum(path.stat().st_size for path in paths)
    offsets = dict.fromkeys(unread, 0)
    clock = _Clock()
    while unread:
        for source, rest in list(unread.items()):
            data = next(rest, b"")
            if data:
                outcome = engine.feed(Chunk(source, 1, offsets[source], data, run=run), clock.now)
                offsets[source] += len(data)
            else:
                outcome = engine.finish(source, clock.now)
                del unread[source]
            clock.advance(outcome.steps)
            if outcome:
                yield Passage(outcome, clock.now)
        if progress is not None:
            progress(min(sum(offsets.values()), total), total)


class _Clock:
    """The running sum of step seconds, each step counted once whichever file tells it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._counted: set[tuple[int, int]] = set()

    def advance(self, rows: Sequence[StepRow]) -> None:
        for row in rows:
            at = (row.attempt, row.step)
            seconds = steps.timings(row.values)
            if at not in self._counted and seconds:
                self._counted.add(at)
                self.now += seconds.get(STEP) or sum(seconds.values())


def pieces(path: Path, size: int = 0) -> Iterator[bytes]:
    """The bytes of a log, a piece at a time; of ``*.gz`` what is inside.

    Raises:
        LogError: it cannot be read to its end.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while data := file.read(size or PIECE):
                yield data
    except EOFError:
        raise LogError(f"{path}: the compressed data ends too early; `gzip -dc` still gives what is there") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise LogError(f"{path}: cannot be unpacked ({error}); name it without .gz if it is plain text") from None
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from None
