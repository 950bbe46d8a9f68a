"""Text that people pasted -> the lines that were printed.

A terminal wraps a step line at its width, anywhere, and a copy has a row for each part, without blanks at its end;
pages and chats show one key a row.  Only step lines are put together, and only from rows that go on with them:

    (TaskRunner pid=9) step:60 - actor/entropy:0.34 - act      (TaskRunner pid=9) step:1
    or/lr:1e-06 - timing_s/step:77                              - actor/entropy:0.36
    .7                                                          - timing_s/step:93.5

A log that nobody has pasted stays as it is, up to coincidences that this cannot tell from a wrapped line; so this is
no part of reading a log that is being written.
"""

from __future__ import annotations

import re

_LONGEST = 1 << 17
"""A longer line is put together no further."""

_NUMBER = r"[-+]?(?:nan|inf|True|False|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
_HEAD = re.compile(r"(?:.{0,300}?[\s)\]m:])?step:[0-9]{1,18}(?: -? ?|$)")
_ITEM = re.compile(rf"[^\s:]+(?::[^\s:]+)*:(?:np\.\w+\({_NUMBER}\)|{_NUMBER})")
_ITEM_CUT_SHORT = re.compile(r"[^\s:]*(?::\S*)?")
_KEY_OF_ITS_OWN = re.compile(r"\s*- (\S+)\s*")
_LINE_OF_ITS_OWN = re.compile(
    r"\s*(?:\x1b|\(\w+ pid|\(raylet|step:|Traceback|DEBUG|INFO|WARN|ERROR|CRITICAL|File \""
    r"|\[?[0-9]{2,4}-[0-9]{2}-[0-9]{2}[ T]|[^|]{0,60}[0-9]{1,3}%\|)"
)


def rejoined(data: bytes) -> bytes:
    """The same text, with each step line in one row."""
    lines: list[str] = []
    row_before, width = "", 0
    for raw in data.decode(errors="surrogateescape").split("\n"):
        row = raw.rstrip("\r")
        line = lines[-1] if lines else ""
        if not _HEAD.match(line) or len(line) > _LONGEST or _LINE_OF_ITS_OWN.match(row):
            lines.append(raw)
        elif (own := _KEY_OF_ITS_OWN.fullmatch(row)) and _ITEM.fullmatch(own[1]) and "/" in own[1]:
            lines[-1] = f"{line.rstrip()} - {own[1]}"
        elif (joined := _joined(line, row, full=abs(len(row_before) - width) <= 1)) is not None:
            lines[-1] = joined
            width = len(row_before)
        else:
            lines.append(raw)
        row_before = row
    return "\n".join(lines).encode(errors="surrogateescape")


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
    if not row.strip() or not all(map(_ITEM.fullmatch, whole)) or not _ITEM_CUT_SHORT.fullmatch(last.rstrip(" -")):
        return None
    brings_item = any("/" in item for item in whole[1:]) or (len(whole) == 1 and _ITEM.fullmatch(last) and "/" in last)
    return joined if brings_item or full or not _ITEM.fullmatch(line[seam:]) else None
