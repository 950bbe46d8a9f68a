"""What of the samples of GPUs goes to the store: by host and instant, whether they are compared or come too late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verlwatch.core.cards._card import Card, Key
from verlwatch.core.cards._instants import GRAIN_S
from verlwatch.core.types import Event, GpuCell, GpuRow

AHEAD_S = 600.0
"""An instant that lies further ahead is no time that a clock shows: it would not be forgotten for its age."""


def row_of(run: str, event: Event, cards: Mapping[Key, Card], now: float) -> tuple[GpuRow, ...]:
    """A sample as a row of one card, with what else is known of that card; nothing for any other event.

    Clocks of hosts differ by milliseconds: instants are rounded, so that those of all hosts are the same.
    """
    if event.name != "gpu_sample" or event.at is None or not 0.0 <= event.at <= now + AHEAD_S:
        return ()
    scope, said = dict(event.scope), event.attributes
    host, gpu = scope.get("host", ""), scope.get("gpu", "")
    card = cards.get((host, gpu))
    if card is None:
        return ()
    cell = GpuCell(
        gpu,
        card.rank,
        card.total,
        _number(said.get("used_gb")),
        _number(said.get("utilization")),
        _number(said.get("power_w")),
        _number(said.get("temperature_c")),
    )
    return (GpuRow(run, host, round(event.at / GRAIN_S) * GRAIN_S, (cell,)),)


def by_instant(rows: Iterable[GpuRow]) -> tuple[GpuRow, ...]:
    """Rows of the same host and instant as one, its cards in the order in which they came; a later word counts."""
    found: dict[tuple[str, str, float], dict[str, GpuCell]] = {}
    for row in rows:
        found.setdefault((row.run, row.host, row.at), {}).update((cell.gpu, cell) for cell in row.cells)
    return tuple(GpuRow(*key, tuple(cells.values())) for key, cells in found.items())


def _number(value: str | float | None) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None  # noqa: PLR0124 - NaN is none
