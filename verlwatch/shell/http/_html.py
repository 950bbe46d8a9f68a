"""Small pieces of HTML: elements whose text is always escaped, numbers and times as people read them, sparklines."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from itertools import groupby

from verlwatch.shell.printable import shortened

_VOID = frozenset({"meta", "link"})
_ONE_PERCENT = 0.01
_WIDTH, _HEIGHT = 120, 24
_MARGIN = 0.1
"""A sparkline's range reaches this part below and above its values, so that plain noise looks as small as it is."""


class Html(str):
    """Markup that is safe as it stands; any other text is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """``text`` as one harmless line of at most 300 characters."""
    return text if isinstance(text, Html) else Html(html.escape(shortened(text)))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """An element; ``class_`` and ``data_label`` stand for ``class`` and ``data-label``, None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value if isinstance(value, str) else str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str, by: str = "") -> Html:
    """The children one after the other, the empty ones left out."""
    return Html(by.join(escaped(child) for child in children if child))


def table(headings: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], class_: str) -> Html:
    """A table of (class of the row, cells); each cell carries its heading for narrow screens."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = [
        tag(
            "tr",
            *(tag("td", cell or Html("&nbsp;"), data_label=label) for label, cell in zip(headings, cells, strict=True)),
            class_=kind or None,
        )
        for kind, cells in rows
    ]
    return tag("table", tag("thead", head), tag("tbody", *body), class_=class_)


def number(value: float | None, unit: str = "") -> str:
    """Three digits or so: ``0.52 s``, ``12.3 s``, ``145 s``; a dash where it is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2  # noqa: PLR2004 - powers of ten
    return f"{value:,.{digits}f}{unit and chr(0xA0) + unit}"


def ratio(value: float | None) -> str:
    """``1.52×``."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.2f}×"


def share(value: float | None) -> str:
    """``37 %``, ``<1 %``."""
    if value is None or not math.isfinite(value):
        return "–"
    return "<1\xa0%" if 0 < value < _ONE_PERCENT / 2 else f"{100 * value:.0f}\xa0%"


def size(value: float | None) -> str:
    """Bytes: ``0 B``, ``12.3 MB``."""
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:  # noqa: PLR2004 - decimal units
            return f"{value:.0f}\xa0B" if unit == "B" else number(value, unit)
        value /= 1000
    return number(value, "TB")


def duration(value: float | None) -> str:
    """``12 s``, ``3 min``, ``2 h 10 min``, ``3 d 4 h``."""
    if value is None or not math.isfinite(value):
        return "–"
    seconds = max(0, round(value))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def clock(at: float, zone: tzinfo | None) -> Html:
    """The absolute time with its offset."""
    local = datetime.fromtimestamp(at, UTC).astimezone(zone)
    return tag("time", f"{local:%Y-%m-%d %H:%M:%S %z}", datetime=local.isoformat(timespec="seconds"))


def moment(at: float | None, now: float, zone: tzinfo | None) -> Html:
    """The absolute time with its offset, and how long ago that is."""
    return Html("never") if at is None else joined(clock(at, zone), f" ({duration(now - at)} ago)")


def sparkline(values: Sequence[float | None], baseline: float | None) -> Html:
    """The last values as a line with gaps where one is not known, the baseline dashed, the newest value a dot."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return Html("")
    told = [*known, baseline] if baseline is not None and math.isfinite(baseline) else known
    low, high = min(told), max(told)
    pad = (abs(high) or 1.0) * _MARGIN
    low, high = low - pad, high + pad

    def y(value: float) -> float:
        return round(_HEIGHT * (high - value) / (high - low), 1)

    across = _WIDTH / max(len(values) - 1, 1)
    points = [
        (round(i * across, 1), y(value)) if value is not None and math.isfinite(value) else None
        for i, value in enumerate(values)
    ]
    lines = [_polyline([point for point in part if point]) for there, part in groupby(points, key=bool) if there]
    dashed = tag("line", x1=0, x2=_WIDTH, y1=y(told[-1]), y2=y(told[-1])) if len(told) > len(known) else ""
    last = next(point for point in reversed(points) if point)
    label = f"last {len(values)} steps, {number(min(known))} to {number(max(known))} s"
    return tag(
        "svg",
        tag("title", label),
        dashed,
        *lines,
        _polyline([last], class_="now"),
        class_="spark",
        viewBox=f"-3 -3 {_WIDTH + 6} {_HEIGHT + 6}",
        preserveAspectRatio="none",
        role="img",
    )


def _polyline(points: Sequence[tuple[float, float]], class_: str | None = None) -> Html:
    ends = points if len(points) > 1 else [*points, *points]  # a line to itself shows as a dot
    return tag("polyline", points=Html(" ".join(f"{x},{y}" for x, y in ends)), class_=class_)
