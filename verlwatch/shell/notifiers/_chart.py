"""The last values of a message's metric as a small PNG, for channels that show images.

Dark ink on a card of its own, so that it reads the same in a light and in a dark client.  Needs Pillow (extra
``images``), which is loaded when the first image is drawn; without it there are no images.
"""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from verlwatch.core.incidents import quantity
from verlwatch.shell.notifiers._text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verlwatch.core.types import Message

SIZE = (960, 320)
_PLOT = (40, 66, 920, 286)
"""Left, top, right and bottom of where the values are."""
_CARD, _INK, _FAINT, _BEFORE, _AFTER, _SHADE = "#ffffff", "#1d1c1d", "#6b6a6b", "#1264a3", "#c2410c", "#fdf0e6"
_FONT, _TITLE = 20, 24
_DASH, _ROOM = 8, 34
_NAME = 60
LEAST = 2
"""A line needs so many points."""

Xy = tuple[float, float]


class Chart(NamedTuple):
    """What an image shows: finite ``values``, oldest first, of a metric whose baseline is ``before``.

    ``onset`` is the place among the values of the first changed one; 0 where the change is older than they are, and
    None where nothing is known to have changed.
    """

    metric: str
    values: tuple[float, ...]
    before: float | None
    onset: int | None


def chart_of(message: Message) -> Chart | None:
    """What to draw of a message; None where there is no line to draw."""
    values = tuple(filter(isfinite, message.recent))
    if len(values) < LEAST:
        return None
    changed = message.step - message.onset_step + 1  # so many of the values, unless some are missing
    onset = len(values) - len(tuple(filter(isfinite, message.recent[-changed:]))) if changed > 0 else len(values)
    is_marked = onset < len(values) and message.closed_as != "resolved"
    before = message.before if isfinite(message.before) else None
    return Chart(clean(message.phase, _NAME), values, before, onset if is_marked else None)


def chart_png(metric: str, values: Sequence[float], before: float | None, onset: int | None) -> bytes | None:
    """The image (see `Chart`); None where Pillow is missing or there is no line to draw."""
    try:
        pil, drawing, fonts = (import_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    except ImportError:
        return None
    if len(values) < LEAST:
        return None
    image = pil.new("RGB", SIZE, _CARD)
    draw = drawing.Draw(image)
    left, top, right, bottom = _PLOT
    points = _points(values, before)
    if onset is not None:
        draw.rectangle((_between(points, onset), top, right + 20, bottom), fill=_SHADE)
    draw.line(((left, bottom), (right + 20, bottom)), fill=_FAINT, width=2)
    if before is not None:
        level = _height(before, values, before)
        _dashed(draw, level)
        beside = level + 8 if level < bottom - _ROOM else level - _ROOM
        draw.text((left, beside), f"baseline {quantity(metric, before)}", fill=_FAINT, font=fonts.load_default(_FONT))
    _curve(draw, points, len(values) if onset is None else onset)
    large = fonts.load_default(_TITLE)
    draw.text((left, 18), f"{_latin(metric)}, the last {len(values)} steps", fill=_INK, font=large)
    now, color = quantity(metric, values[-1]), _BEFORE if onset is None else _AFTER
    draw.text((right + 20, 18), f"now {now}", fill=color, font=large, anchor="ra")
    out = BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def as_json(chart: Chart) -> dict[str, Any]:
    """For a payload; the names are those of `chart_png`."""
    return {**chart._asdict(), "values": list(chart.values)}


def _height(value: float, values: Sequence[float], before: float | None) -> float:
    """Where a value stands; the axis begins at zero, so that heights compare as the values do."""
    _, top, _, bottom = _PLOT
    high = max(*values, before or 0.0) or 1.0
    return bottom - (bottom - top) * min(1.0, max(0.0, value / high))


def _points(values: Sequence[float], before: float | None) -> list[Xy]:
    left, _, right, _ = _PLOT
    step = (right - left) / (len(values) - 1)
    return [(left + step * i, _height(value, values, before)) for i, value in enumerate(values)]


def _between(points: Sequence[Xy], onset: int) -> float:
    """Half a step before the first changed value."""
    return points[onset][0] - (points[1][0] - points[0][0]) / 2


def _curve(draw: Any, points: Sequence[Xy], changed: int) -> None:
    """A line with a dot a value, in another colour from the place ``changed`` on."""
    for i, ends in enumerate(pairwise(points)):
        draw.line(ends, fill=_AFTER if i + 1 >= changed else _BEFORE, width=4, joint="curve")
    for i, (x, y) in enumerate(points):
        draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=_AFTER if i >= changed else _BEFORE)


def _dashed(draw: Any, y: float) -> None:
    left, _, right, _ = _PLOT
    for x in range(left, right + 20, 2 * _DASH):
        draw.line(((x, y), (x + _DASH, y)), fill=_FAINT, width=2)


def _latin(text: str) -> str:
    """The characters that Pillow's own font has."""
    return clean(text, _NAME).encode("latin-1", "replace").decode("latin-1")
