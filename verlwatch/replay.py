"""Finished logs through the same core: same bytes in, same findings out.

A log read after the fact has no arrival times.  Its clock is the running sum of its own step times, so `now` here is
seconds since the first step.  Files given together are one run.  Those that tell of the same steps, and those that tell
of none, grew side by side: they are read a piece of each in turn, each in proportion to its size, so that what belongs
to the same steps comes together.  Those whose steps follow one another, as after a restart, are read one after another.
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
ROUNDS = 128
"""Turns in which files that grew side by side are read: what is read in a turn is so large a part of the run."""
SMALLEST, LARGEST = 1 << 12, 1 << 20
"""Bounds of what the largest of them gives in a turn."""
ENDS = 1 << 20
"""Bytes at either end of a file in which its first and last steps are looked for."""
PACKED = 8
"""How much larger a text is than what gzip makes of it, about."""
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
    side = [_Lane(lane, size) for lane, size in _shares(lanes(paths), piece or PIECE)]
    total, fed = sum(path.stat().st_size for path in paths), 0
    clock = _Clock()
    while side:
        for lane in list(side):
            for outcome in lane.turn(engine, run, clock.now):
                clock.advance(outcome.steps)
                if outcome:
                    yield Passage(outcome, clock.now)
            fed += lane.taken
            if lane.is_over:
                side.remove(lane)
        if progress is not None:
            progress(min(fed, total), total)


class _Lane:
    """Files that are read one after another, ``size`` bytes a turn."""

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self.taken = 0
        self.is_over = False
        self._paths = list(paths)
        self._size = size
        self._offset = 0
        self._rest = pieces(self._paths[0], size)

    def turn(self, engine: Engine, run: str, now: float) -> Iterator[Outcome]:
        """Feeds the next piece; at the end of a file its successor is begun before it ends, for the run goes on."""
        source = str(self._paths[0])
        data = next(self._rest, b"")
        self.taken = len(data)
        if data:
            yield engine.feed(Chunk(source, 1, self._offset, data, run=run), now)
            self._offset += len(data)
            return
        del self._paths[0]
        if self._paths:
            yield engine.feed(Chunk(str(self._paths[0]), 1, 0, b"", run=run), now)
            self._offset, self._rest = 0, pieces(self._paths[0], self._size)
        self.is_over = not self._paths
        yield engine.finish(source, now)


def _shares(found: Sequence[Sequence[Path]], piece: int) -> Iterator[tuple[Sequence[Path], int]]:
    """Each lane, and how much of it is read in a turn: the same part of each."""
    sizes = [sum(path.stat().st_size * (PACKED if path.suffix == ".gz" else 1) for path in lane) for lane in found]
    largest = max(sizes, default=0)
    most = piece if len(found) == 1 else min(LARGEST, max(SMALLEST, largest // ROUNDS))
    for lane, size in zip(found, sizes, strict=True):
        yield lane, max(1, -(-size * most // largest)) if largest else piece


def lanes(paths: Sequence[Path]) -> list[list[Path]]:
    """Files that grew side by side; in a lane those that followed one another.

    Of two files that tell of steps, one follows the other if they share less than half of the shorter one's steps:
    a run that is taken up again repeats those since its last checkpoint.

    Raises:
        LogError: a file cannot be read.
    """
    spans = {path: _span(path) for path in paths} if len(paths) > 1 else {}
    told = sorted(((span, path) for path, span in spans.items() if span), key=lambda each: each[0])
    found: list[list[Path]] = []
    last: list[tuple[int, int]] = []
    for span, path in told:
        at = next((i for i, before in enumerate(last) if _follows(before, span)), len(found))
        if at == len(found):
            found.append([])
            last.append(span)
        found[at].append(path)
        last[at] = span
    return [*found, *([path] for path in paths if not spans.get(path))]


def _follows(before: tuple[int, int], span: tuple[int, int]) -> bool:
    shorter = min(end - begin + 1 for begin, end in (before, span))
    return 2 * (before[1] - span[0] + 1) < shorter


def _span(path: Path) -> tuple[int, int] | None:
    """The first and the last step that a file tells of near its ends; None if there are none."""
    head = b""
    tail = b""
    for data in _ends(path):
        head, tail = head or data, data
    found = _steps(head)
    later = _steps(tail) if tail is not head else found
    return (found[0], (later or found)[-1]) if found else None


def _ends(path: Path) -> Iterator[bytes]:
    """The first bytes of a file and, where it is longer, its last ones from the start of a line on."""
    if path.suffix != ".gz":
        try:
            with path.open("rb") as file:
                yield file.read(ENDS)
                size = path.stat().st_size
                if size > ENDS:
                    file.seek(max(ENDS, size - ENDS))
                    yield file.read(ENDS).partition(b"\n")[2]
        except OSError as error:
            raise LogError(f"{path}: {error.strerror}") from None
        return
    before = data = b""
    for number, piece in enumerate(pieces(path, ENDS)):
        if not number:
            yield piece
        before, data = data, piece
    yield (before + data)[-ENDS:].partition(b"\n")[2]


def _steps(data: bytes) -> list[int]:
    """The steps with timing that these bytes tell of."""
    engine = Engine()
    engine.is_timed = False
    outcomes = (engine.feed(Chunk("", 1, 0, data), 0.0), engine.finish("", 0.0))
    return [row.step for outcome in outcomes for row in outcome.steps if steps.timings(row.values)]


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
