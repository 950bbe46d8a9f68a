"""Half lines of hundreds of files at once take no more memory than they have room."""

from __future__ import annotations

import pytest

from verlwatch.core.engine import Engine
from verlwatch.core.lines import LONG_BYTES, ROOM_BYTES
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Cursor, Outcome, Snapshot

PIECE = 1 << 17
STEP = b"step:%d - timing_s/gen:6.5 - timing_s/step:9.25\n"


def fed(engine: Engine, source: str, offset: int, data: bytes) -> Outcome:
    return engine.feed(Chunk(source, 0, offset, data, f"token of {source} at {offset + len(data)}", source), 0.0)


@pytest.mark.parametrize("begin", [b"\rProcessed prompts: ", b"step:0 - "])
def test_half_lines_of_many_files_keep_within_their_room(begin: bytes) -> None:
    engine = Engine()
    cursors: dict[str, Cursor] = {}
    for offset in range(0, 7 * PIECE, PIECE):
        for n in range(40):
            outcome = fed(engine, f"{n}.log", offset, begin.ljust(PIECE, b"x") if not offset else b"x" * PIECE)
            cursors.update((cursor.source, cursor) for cursor in outcome.cursors)
            assert sum(reader.held for reader in engine.readers.values()) <= ROOM_BYTES
    assert sum(reader.counts.cut_lines for reader in engine.readers.values()) > 10
    assert set(cursors.values()) == set(engine.cursors)  # of a line that was let go the position is committed too
    assert all(cursor.token == f"token of {source} at {7 * PIECE}" for source, cursor in cursors.items())

    again = Engine()
    again.restore(Snapshot(tuple(cursors.values())))
    let_go = [source for source, cursor in cursors.items() if cursor.reread_from == 7 * PIECE]
    assert len(let_go) > 10
    for source in let_go:
        outcome = fed(again, source, 7 * PIECE, b" step:9 - a/b:1\n" + STEP % 2)
        assert [row.step for row in outcome.steps] == [2]


def test_a_long_line_by_itself_is_whole_whatever_the_limit() -> None:
    engine = Engine(Settings(line_limit=2 * ROOM_BYTES))
    for offset in range(0, ROOM_BYTES + 2 * PIECE, PIECE):
        fed(engine, "x.log", offset, b"y" * PIECE)
    assert engine.readers["x.log"].held == ROOM_BYTES + 2 * PIECE


def test_many_short_half_lines_are_kept() -> None:
    engine = Engine()
    for n in range(1100):
        fed(engine, f"{n}.log", 0, b"y" * LONG_BYTES)
    assert sum(reader.held for reader in engine.readers.values()) == 1100 * LONG_BYTES > ROOM_BYTES


def test_a_new_line_limit_reaches_files_that_are_open() -> None:
    engine = Engine(Settings(line_limit=1000))
    fed(engine, "x.log", 0, b"y" * 900)
    engine.reconfigure(Settings(line_limit=2000))
    fed(engine, "x.log", 900, b"y" * 900)
    assert engine.readers["x.log"].held == 1800
