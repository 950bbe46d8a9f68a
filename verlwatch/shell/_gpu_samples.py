"""Samples of GPUs in the database: each instant for a day, then one in ten minutes with the least and most in between.

A row is one host at one instant, packed: which cards they are stands once in ``gpu_cards``, not with each row.
Numbers are little-endian, for each card MiB used (4 bytes), percent (1), W (2) and °C (1); of a thinned row follow, for
each card, the least and the most MiB (4 and 4).  All bits set is unknown.
"""

from __future__ import annotations

import math
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

from verlwatch.core.types import GpuCell, GpuRow
from verlwatch.shell._rows import UNREADABLE

RAW_S: Final = 86_400.0
"""So long every instant is kept."""
THIN_S: Final = 600.0
"""Then one in so many seconds."""

_NOW, _AROUND = struct.Struct("<IBHB"), struct.Struct("<II")
_MIB = 1024.0
_UNKNOWN = (0xFFFF_FFFF, 0xFF, 0xFFFF, 0xFF)


class GpuSamples:
    """What a store answers about samples; ``within`` runs a function in the database's thread, in a transaction."""

    def __init__(self, within: Callable[..., Any], left_out: Counter[str]) -> None:
        self._within = within
        self._left_out = left_out

    async def stretch(self, run: str, since: float, until: float, most: int) -> list[GpuRow]:
        """Rows after ``since`` and up to ``until``, by host and time: the last of each ``most``-th part of that time.

        Every host has at most ``most`` rows, and one more for each time that its cards or ranks changed.
        """
        rows: list[GpuRow] = await self._within(self._stretch, run, since, until, most)
        return rows

    def _stretch(self, sql: sqlite3.Connection, run: str, since: float, until: float, most: int) -> list[GpuRow]:
        found = []
        known = sql.execute("SELECT id, host, cards FROM gpu_cards WHERE run = ?", (run,)).fetchall()
        for row_id, host, cards in known if since < until else ():
            try:
                names = _names(cards)
            except UNREADABLE:
                self._left_out["gpu_cards"] += 1
                continue
            for at, data in _parts(sql, row_id, since, until, most):
                try:
                    found.append(GpuRow(run, host, at, _cells(names, data)))
                except (struct.error, *UNREADABLE):
                    self._left_out["gpu_sample"] += 1
        return sorted(found, key=lambda row: (row.host, row.at))


def _parts(sql: sqlite3.Connection, cards: int, since: float, until: float, most: int) -> Iterator[tuple[float, bytes]]:
    """The last row in each part of the time.  One look-up for each: how many rows there are does not matter."""
    between = "FROM gpu_sample WHERE cards = ? AND at > ? AND at <= ?"
    first, last = sql.execute(f"SELECT min(at), max(at) {between}", (cards, since, until)).fetchone()
    if first is None:
        return
    part = (until - since) / most
    for number in range(math.ceil((first - since) / part) - 1, math.ceil((last - since) / part)):
        ends = (since + number * part, since + (number + 1) * part)
        query = f"SELECT at, data {between} ORDER BY at DESC LIMIT 1"
        yield from sql.execute(query, (cards, max(since, ends[0]), min(until, ends[1]))).fetchall()


def put(sql: sqlite3.Connection, rows: Iterable[GpuRow]) -> None:
    """Adds rows; one that is there already stays as it is."""
    for row in rows:
        cells = sorted(row.cells, key=lambda cell: cell.gpu)
        names = orjson.dumps([[cell.gpu, cell.rank, _rounded(cell.total_gb)] for cell in cells]).decode()
        begin = row.at // THIN_S * THIN_S
        sql.execute(
            "INSERT INTO gpu_cards (run, host, cards, thinned_to) VALUES (?, ?, ?, ?) ON CONFLICT (run, host, cards)"
            " DO UPDATE SET thinned_to = excluded.thinned_to WHERE thinned_to > excluded.thinned_to",
            (row.run, row.host, names, begin),
        )
        sql.execute(
            "INSERT INTO gpu_sample (cards, at, data) SELECT id, ?, ? FROM gpu_cards"
            " WHERE run = ? AND host = ? AND cards = ? ON CONFLICT (cards, at) DO NOTHING",
            (row.at, _packed(cells), row.run, row.host, names),
        )


def thin(sql: sqlite3.Connection, before: float) -> bool:
    """Makes one row of those of ten minutes that lie before ``before``; whether there may be more."""
    limit = before // THIN_S * THIN_S
    found = sql.execute(
        "SELECT id, cards, first FROM (SELECT id, cards, (SELECT min(at) FROM gpu_sample AS sample"
        " WHERE sample.cards = gpu_cards.id AND at >= thinned_to) AS first FROM gpu_cards) WHERE first < ? LIMIT 1",
        (limit,),
    ).fetchone()
    if found is None:
        return False
    row_id, cards, first = found
    begin = first // THIN_S * THIN_S
    between = "FROM gpu_sample WHERE cards = ? AND at >= ? AND at < ?"
    place = (row_id, begin, begin + THIN_S)
    rows = sql.execute(f"SELECT at, data {between} ORDER BY at", place).fetchall()
    sql.execute(f"DELETE {between}", place)
    if (data := _merged(cards, [data for _, data in rows])) is not None:
        sql.execute("INSERT INTO gpu_sample (cards, at, data) VALUES (?, ?, ?)", (row_id, rows[-1][0], data))
    sql.execute("UPDATE gpu_cards SET thinned_to = ? WHERE id = ?", (begin + THIN_S, row_id))
    return True


def forget_oldest(sql: sqlite3.Connection, excess: int, batch: int) -> int:
    """Forgets the oldest rows up to ``excess`` bytes and one more; how many bytes."""
    gone, rows = 0, []
    for cards, at, length in sql.execute(
        "SELECT cards, at, length(data) + 32 FROM gpu_sample ORDER BY at LIMIT ?", (batch,)
    ).fetchall():
        if gone >= excess:
            break
        rows.append((cards, at))
        gone += length
    sql.executemany("DELETE FROM gpu_sample WHERE cards = ? AND at = ?", rows)
    if rows:
        sql.execute(UNUSED)
    return gone


UNUSED: Final = (
    "DELETE FROM gpu_cards WHERE NOT EXISTS (SELECT 1 FROM gpu_sample WHERE gpu_sample.cards = gpu_cards.id)"
)


# ---------------------------------------------------------------------------------------------------- packing
class _Packed(NamedTuple):
    used: int
    percent: int
    watts: int
    celsius: int


def _packed(cells: Sequence[GpuCell]) -> bytes:
    return b"".join(
        _NOW.pack(
            _count(cell.used_gb, _MIB, _UNKNOWN[0]),
            _count(cell.utilization, 1.0, _UNKNOWN[1]),
            _count(cell.power_w, 1.0, _UNKNOWN[2]),
            _count(cell.temperature_c, 1.0, _UNKNOWN[3]),
        )
        for cell in cells
    )


def _count(value: float | None, unit: float, unknown: int) -> int:
    if value is None or not 0.0 <= value < math.inf:
        return unknown
    return min(round(value * unit), unknown - 1)


def _unpacked(data: bytes, cards: int) -> tuple[list[_Packed], list[tuple[int, int]] | None]:
    """Raises struct.error for what is no row of so many cards."""
    raw = cards * _NOW.size
    now = [_Packed(*one) for one in _NOW.iter_unpack(data[:raw])]
    if len(now) != cards or len(data) not in {raw, raw + cards * _AROUND.size}:
        raise struct.error("not of so many cards")
    return now, list(_AROUND.iter_unpack(data[raw:])) if len(data) > raw else None


def _merged(names: Any, rows: Sequence[Any]) -> bytes | None:
    """The last of the rows, with the least and the most of each card in all of them; None where none can be read."""
    last: list[_Packed] = []
    around: list[tuple[int, int]] = []
    for data in rows:
        try:
            last, told = _unpacked(data, len(_names(names)))
        except (struct.error, *UNREADABLE):
            continue
        pairs = told or [(one.used, one.used) for one in last]
        around = [_wider(*both) for both in zip(around, pairs, strict=True)] if around else pairs
    if not last:
        return None
    return b"".join((*(_NOW.pack(*one) for one in last), *(_AROUND.pack(*pair) for pair in around)))


def _wider(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    known = [pair for pair in (one, other) if pair[0] != _UNKNOWN[0]]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else one


def _cells(names: Sequence[tuple[str, str | None, float | None]], data: bytes) -> tuple[GpuCell, ...]:
    now, around = _unpacked(data, len(names))
    pairs: Sequence[tuple[int, int] | tuple[None, None]] = around or [(None, None)] * len(now)
    return tuple(
        GpuCell(
            *name,
            _value(one.used, _MIB, _UNKNOWN[0]),
            _value(one.percent, 1.0, _UNKNOWN[1]),
            _value(one.watts, 1.0, _UNKNOWN[2]),
            _value(one.celsius, 1.0, _UNKNOWN[3]),
            _value(low, _MIB, _UNKNOWN[0]),
            _value(high, _MIB, _UNKNOWN[0]),
        )
        for name, one, (low, high) in zip(names, now, pairs, strict=True)
    )


def _value(count: int | None, unit: float, unknown: int) -> float | None:
    return None if count is None or count == unknown else count / unit


def _names(cards: Any) -> list[tuple[str, str | None, float | None]]:
    """Index, rank and total of each card.  Raises one of UNREADABLE."""
    return [(gpu, rank, total) for gpu, rank, total in orjson.loads(cards)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
