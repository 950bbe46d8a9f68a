"""A message of Slack's Block Kit as a picture: what a channel shows, near enough, with its text as text.

As much of Block Kit as verlwatch's own messages use: header, section (text or fields), context.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 760
_LEFT, _TOP, _EDGE = 68, 24, 24
_INK, _FAINT, _CODE, _LINE = "#1d1c1d", "#616061", "#c01343", "#dddddd"
_SANS = "Lato, 'Helvetica Neue', Helvetica, 'Segoe UI', Arial, sans-serif"
_MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_BODY, _HEADER, _SMALL, _FIXED = 15, 18, 12, 12
_WIDE = {_BODY: 0.5, _HEADER: 0.55, _SMALL: 0.5, _FIXED: 0.62}
"""Mean width of a character, in parts of its size."""
_INLINE = re.compile(r"(\*[^*]+\*|`[^`]+`)")
_LINK = re.compile(r"<[^<>|]+\|([^<>]+)>")
_DISCS = {"🔴": "#e01e5a", "🟠": "#e8912d", "🔵": "#1264a3"}
"""Drawn, as not every font has them."""


class _Picture:
    """Lines of text from top to bottom."""

    def __init__(self) -> None:
        self.y = float(_TOP)
        self.parts: list[str] = []

    def text(self, text: str, size: int = _BODY, *, x: int = _LEFT, bold: bool = False, color: str = _INK) -> None:
        """One line, with what mrkdwn formats in it."""
        spans = "".join(_span(piece) for piece in _INLINE.split(text) if piece)
        weight = ' font-weight="700"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{self.y:g}" font-size="{size}" fill="{color}"{weight}>{spans}</text>')

    def lines(self, text: str, size: int = _BODY, *, bold: bool = False, color: str = _INK) -> None:
        """As many lines as it takes."""
        for line in text.split("\n"):
            for piece in _wrapped(line, size, WIDTH - _LEFT - _EDGE):
                self.y += size * 1.45
                self.text(piece, size, bold=bold, color=color)

    def disc(self, color: str) -> None:
        """A round sign at the start of the line that follows."""
        self.parts.append(f'<circle cx="{_LEFT + 9}" cy="{self.y + 20:g}" r="8" fill="{color}"/>')

    def code(self, text: str) -> None:
        """A block in a box, lines cut where the box ends."""
        lines = text.split("\n")
        width, height = WIDTH - _LEFT - _EDGE, 20 * len(lines) + 14
        place = f'x="{_LEFT}" y="{self.y + 6:g}" width="{width}" height="{height}"'
        self.parts.append(f'<rect {place} rx="4" fill="#f8f8f8" stroke="{_LINE}"/>')
        for line in lines:
            self.y += 20
            shown = html.escape(html.unescape(line))
            self.parts.append(
                f'<text x="{_LEFT + 10}" y="{self.y + 4:g}" font-size="{_FIXED}" font-family="{_MONO}" fill="{_INK}">'
                f"{shown}</text>"
            )
        self.y += 18

    def fields(self, fields: Sequence[str]) -> None:
        """Two columns."""
        for row in range(0, len(fields), 2):
            top, deepest = self.y, self.y
            for column, field in enumerate(fields[row : row + 2]):
                self.y = top
                width = (WIDTH - _LEFT - _EDGE) // 2
                for piece in (piece for line in field.split("\n") for piece in _wrapped(line, _BODY, width - _EDGE)):
                    self.y += _BODY * 1.4
                    self.text(piece, x=_LEFT + column * width)
                deepest = max(deepest, self.y)
            self.y = deepest + 6


def svg(payload: Mapping[str, Any], name: str) -> str:
    """The picture of a payload that an app called ``name`` posts."""
    picture = _Picture()
    picture.y += 12
    picture.text(f"*{name}*")
    tag = _LEFT + 10 + round(len(name) * _BODY * 0.56)
    picture.parts.append(
        f'<rect x="{tag}" y="{picture.y - 11:g}" width="30" height="14" rx="2" fill="#e8e8e8"/>'
        f'<text x="{tag + 4}" y="{picture.y:g}" font-size="10" font-weight="700" fill="{_FAINT}">APP</text>'
    )
    for block in payload["blocks"]:
        _draw(picture, block)
    height = round(picture.y + _TOP)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="{_SANS}" role="img">',
            f"<title>{html.escape(html.unescape(payload['text']))}</title>",
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="{_LINE}"/>',
            '<rect x="20" y="20" width="36" height="36" rx="6" fill="#1264a3"/>',
            '<polyline points="26,44 33,44 37,30 42,48 46,40 50,40" fill="none" stroke="#ffffff" stroke-width="2.5"/>',
            *picture.parts,
            "</svg>\n",
        ]
    )


def _draw(picture: _Picture, block: Mapping[str, Any]) -> None:
    if block["type"] == "header":
        picture.y += 6
        text = block["text"]["text"]
        if color := _DISCS.get(text[0]):
            picture.disc(color)
            text = "\N{EM SPACE}\N{EN SPACE}" + text[1:].lstrip()
        picture.lines(text, _HEADER, bold=True)
    elif block["type"] == "context":
        picture.y += 8
        picture.lines(" ".join(element["text"] for element in block["elements"]), _SMALL, color=_FAINT)
    elif "fields" in block:
        picture.y += 6
        picture.fields([field["text"] for field in block["fields"]])
    elif block["text"]["text"].startswith("```"):
        picture.code(block["text"]["text"].strip("`"))
    else:
        picture.y += 4
        picture.lines(block["text"]["text"])


def _wrapped(line: str, size: int, width: int) -> list[str]:
    """Lines of about ``width`` pixels; links and dates are what is shown of them."""
    room = int(width / (size * _WIDE[size]))
    return textwrap.wrap(_LINK.sub(r"\1", line), room, drop_whitespace=False) or [""]


def _span(piece: str) -> str:
    """What mrkdwn makes of a piece."""
    mark, inner = piece[0], html.escape(html.unescape(piece[1:-1]), quote=False)
    if mark == "*" and piece.endswith("*") and len(piece) > 2:  # noqa: PLR2004 - two signs and something between
        return f'<tspan font-weight="700">{inner}</tspan>'
    if mark == "`":
        return f'<tspan font-family="{_MONO}" fill="{_CODE}">{inner}</tspan>'
    return html.escape(html.unescape(piece), quote=False)
