"""Text that people pasted -> the lines that were printed.

A terminal wraps a step line at its width, anywhere, and a copy has a row for each part, without blanks at its end;
pages and chats show one key a row.  Only step lines are put together, and only from rows that go on with them:

    (TaskRunner pid=9) step:60 - actor/entropy:0.34 - act      (TaskRunner pid=9) step:1
    or/lr:1e-06 - timing_s/step:77                              - actor/entropy:0.36
    .7                                                          - timing_s/step:93.5

Pages lose the ESC before a colour (``[36m(TaskRunner pid=9)[0m step:60``): those of Ray are taken off.

A log that nobody has pasted stays as it is, up to coincidences that this cannot tell from a wrapped line; so this is
no part of reading a log that is being written.
"""

from __future__ import annotations

import re

from verlwatch.core.lines.step_metrics import ITEM_CUT_SHORT, NUMBER

_LONGEST = 1 << 17
"""A longer line is put together no further."""
_LONGEST_ITEM, _HEAD_LENGTH = 1000, 340

_HEAD = re.compile(r"(?:.{0,300}?[\s)\]m:])?step:[0-9]{1,18}(?: -? ?|$)")
_ITEM = re.compile(rf"[^\s:]+(?::[^\s:]+)*:(?:np\.\w+\({NUMBER}\)|{NUMBER})")
_COLOURS_WITHOUT_ESC = re.compile(rb"^\[[0-9;]{1,12}m(\([^()\n]{1,200}\))\[0m", re.MULTILINE)
_DEDUP_WITHOUT_ESC = re.compile(
    rb"(?<!\x1b)\[32m( \[repeated [0-9]{1,9}x across cluster\][^\x1b\n]{0,200}?)\[0m$", re.MULTILINE
)
_KEY_OF_ITS_OWN = re.compile(r"\s*- (\S+)\s*")
_LINE_OF_ITS_OWN = re.compile(
    r"\s*(?:\x1b|\(\w+ pid|\(raylet|step:|Traceback|DEBUG|INFO|WARN|ERROR|CRITICAL|File \""
    r"|\[?[0-9]{2,4}-[0-9]{2}-[0-9]{2}[ T]|[^|]{0,60}[0-9]{1,3}%\|)"
)


class _Row:
    """What there is of a line: rows put together, and the item at their end, at which the next row may go on."""

    def __init__(self, raw: str) -> None:
        self._parts: list[str] = []
        self._last = raw
        self._size = len(raw)
        self._is_step = _HEAD.match(raw) is not None

    def __str__(self) -> str:
        return "".join((*self._parts, self._last))

    def takes(self, row: str, *, full: bool) -> bool | None:
        """Puts the row behind it, if it goes on with it: True if it was wrapped, False for a key by itself."""
        if not self._is_step or self._size > _LONGEST or len(self._last) > _LONGEST_ITEM + _HEAD_LENGTH:
            return None
        if _LINE_OF_ITS_OWN.match(row):
            return None
        if (own := _KEY_OF_ITS_OWN.fullmatch(row)) and _ITEM.fullmatch(own[1]) and "/" in own[1]:
            self._end_with(f"{self._last.rstrip()} - {own[1]}")
            return False
        joined = _joined(self._last, row, full=full)
        if joined is None:
            return None
        self._end_with(joined)
        return True

    def _end_with(self, text: str) -> None:
        seam = text.rfind(" - ")
        self._size += len(text) - len(self._last)
        if seam > 0:
            self._parts.append(text[:seam])
            text = text[seam:]
        self._last = text


def rejoined(data: bytes) -> bytes:
    """The same text, with each step line in one row."""
    data = _DEDUP_WITHOUT_ESC.sub(rb"\1", _COLOURS_WITHOUT_ESC.sub(rb"\1", data))
    lines: list[_Row] = []
    row_before, width = "", 0
    for raw in data.decode(errors="surrogateescape").split("\n"):
        row = raw.rstrip("\r")
        taken = lines[-1].takes(row, full=abs(len(row_before) - width) <= 1) if lines else None
        if taken is None:
            lines.append(_Row(raw))
        elif taken:
            width = len(row_before)
        row_before = row
    return "\n".join(map(str, lines)).encode(errors="surrogateescape")


def _joined(line: str, row: str, *, full: bool) -> str | None:
    """Both as one if the row goes on with the line.

    A row that brings no item of its own is taken where the one before it is ``full``, as wide as others that were
    wrapped, or where the item at the seam is broken for certain: otherwise any number printed by itself would lengthen
    a whole value.
    """
    line = line.rstrip("\r")
    blank = " " if line.endswith(" -") and not row.startswith(" ") else ""
    if row.startswith("- ") and not line.endswith(" "):
        blank = " "
    joined = f"{line}{blank}{row}"
    head = _HEAD.match(joined)
    seam = max(head.end() if head else 0, line.rfind(" - ") + 3)
    *whole, last = joined[seam:].split(" - ")
    if not row.strip() or not all(map(_ITEM.fullmatch, whole)) or not ITEM_CUT_SHORT.fullmatch(last.rstrip(" -")):
        return None
    brings_item = any("/" in item for item in whole[1:]) or (len(whole) == 1 and _ITEM.fullmatch(last) and "/" in last)
    return joined if brings_item or full or not _ITEM.fullmatch(line[seam:]) else None
