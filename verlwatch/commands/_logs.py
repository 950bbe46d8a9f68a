"""Where a report's logs come from: files of one run, or a Ray session whose newest training is meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from verlwatch.shell._ray import Sessions

_SPAN = re.compile(r"([0-9]{0,18}):([0-9]{0,18})")
LAST_STEP = 1 << 62
Span = tuple[int, int]


def resolved(logs: Sequence[Path]) -> tuple[list[Path], str]:
    """The files that ``logs`` mean, and the name of the run where a session gives it (else empty)."""
    sessions, files, name = Sessions(), list[Path](), ""
    for log in logs:
        session = sessions.find(str(log)) if not log.is_file() else None
        found = sessions.files(session) if session else []
        if found:
            folder = Path(session.logs if session else "")
            name = name or (folder.parent if folder.name == "logs" else folder).name
        files += [Path(path) for path in found] or [log]
    return files, name


def span(text: str) -> Span:
    """First and last step of ``A:B``, either of which may be left out.  Raises ArgumentTypeError."""
    found = _SPAN.fullmatch(text)
    if found is None or text == ":":
        raise argparse.ArgumentTypeError(f"{text[:40]!r} are no steps; give FIRST:LAST, for example 100:200")
    first, last = int(found[1] or 0), int(found[2] or LAST_STEP)
    if first > last:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} are no steps: the first one comes after the last one")
    return first, last
