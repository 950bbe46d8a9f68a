"""Logs with the times at which they arrived: what is late, silent or gone can be judged after the fact, too.

A timeline is a text file; each row says what had happened so many seconds after the first:

    0     train.log  12                 its first 12 lines have arrived
    95.5  train.log  13
    200   train.log  unreadable Permission denied
    260   train.log  readable
    300   process    {"pid": 4711, "state": "gone", "exit": "signal 9"}
    900   end                           nothing more comes until then

Files are known by their names, without folders; `process`, `job` and `host` are events that observers would tell, with
their attributes as JSON (``name`` where it is not that word).  ``#`` begins a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from verlwatch.core.engine import Engine
from verlwatch.core.life import OBSERVED, Sight
from verlwatch.core.types import NOBODY, Chunk, Event, Extract, Origin
from verlwatch.replay import LogError, Passage, pieces

_WORDS = {"job": "slurm"}
_LINES = re.compile(r"[0-9]{1,12}")
_TURNS = 10_000
"""So often at most the clock is looked at between two rows."""


class TimelineError(LogError):
    """A timeline cannot be used; the text says where and why."""


class Row(NamedTuple):
    """What has happened by ``at``: lines of a file have arrived, or its readability or an observer's word."""

    at: float
    name: str
    what: str


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a timeline.

    Raises:
        TimelineError: it cannot be read, or a row is none.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise TimelineError(f"{path}: {error}") from None
    rows: list[Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(maxsplit=2) if "{" not in line else line.split(maxsplit=2)
        if not words:
            continue
        try:
            at, name, what = float(words[0]), words[1], words[2].strip() if len(words) > 2 else ""  # noqa: PLR2004
        except (ValueError, IndexError):
            raise TimelineError(f"{path}:{number}: a row is SECONDS NAME WHAT, e.g. `95.5 train.log 13`") from None
        if not 0.0 <= at < 1e9 or (rows and at < rows[-1].at):  # noqa: PLR2004 - thirty years
            raise TimelineError(f"{path}:{number}: {words[0]} s: rows stand in the order of time, from 0 on")
        rows.append(Row(at, name, what))
    return tuple(rows)


def replay(
    engine: Engine, paths: Sequence[Path], run: str | Mapping[str, str], rows: Sequence[Row]
) -> Iterator[Passage]:
    """Feeds what had arrived, when it had, lets time pass between, and yields what comes of it.

    ``run`` is that of all logs, or names that of each; an observer's word is of the first one that is named.

    Raises:
        LogError: a log cannot be read.
        TimelineError: a row names a file or a number of lines that is not there.
    """
    logs = {path.name: _Log(path) for path in paths}
    runs = dict.fromkeys(logs, run) if isinstance(run, str) else run
    now, behind, errors = 0.0, "", dict.fromkeys(logs, "")
    for row, then in zip(rows, (*rows[1:], None), strict=True):
        yield from _wait(engine, now, row.at)
        now = row.at
        if row.name in logs:
            what, _, why = row.what.partition(" ")
            if what in {"readable", "unreadable"}:
                errors[row.name] = (why or "unreadable") if what == "unreadable" else ""
                behind = row.name if then is not None and then[:2] == row[:2] else ""
                engine.see(_sights(runs, errors, behind, now), now)
                outcome = engine.tick(now)
            else:
                data, at = logs[row.name].upto(row)
                chunk = Chunk(row.name, 1, at, data, run=runs[row.name])
                outcome = engine.feed(chunk, now) if data else engine.tick(now)
                if row.name == behind:
                    behind = ""
                    engine.see(_sights(runs, errors, behind, now), now)
        elif row.name == "end":
            outcome = engine.tick(now)
        else:
            outcome = engine.accept((_observed(row, next(iter(runs.values()))),), now)
        if outcome:
            yield Passage(outcome, now)


def _sights(runs: Mapping[str, str], errors: Mapping[str, str], behind: str, now: float) -> list[Sight]:
    """How the logs stand; of the one that is ``behind`` lines are there that are read next."""
    return [Sight(name, runs[name], not why, why, name == behind, now) for name, why in errors.items()]


class _Log:
    """A log and how much of it has arrived."""

    def __init__(self, path: Path) -> None:
        self._data = b"".join(pieces(path))
        self._ends = [i + 1 for i, byte in enumerate(self._data) if byte == 10]  # noqa: PLR2004 - a line feed
        if self._data and not self._data.endswith(b"\n"):
            self._ends.append(len(self._data))
        self._at = 0

    def upto(self, row: Row) -> tuple[bytes, int]:
        """What has come since, up to the end of so many lines, and where it begins."""
        count = len(self._ends) if row.what == "all" else int(row.what) if _LINES.fullmatch(row.what) else -1
        if not 0 <= count <= len(self._ends):
            raise TimelineError(
                f"{row.name} at {row.at:g} s: {row.what!r} is no number of its {len(self._ends)} lines, nor `all`"
            )
        end, at = self._ends[count - 1] if count else 0, self._at
        self._at = max(at, end)
        return self._data[at:end], at


def _wait(engine: Engine, now: float, until: float) -> Iterator[Passage]:
    """Lets time pass, with a turn whenever the engine wants one."""
    for _ in range(_TURNS):
        wanted = [at for at in (engine.deadline(), engine.due()) if at is not None and at <= until]
        if not wanted:
            return
        now = max(now, min(wanted))
        if outcome := engine.tick(now):
            yield Passage(outcome, now)
    raise LogError(f"the engine wants a turn at {now:g} s again and again")


def _observed(row: Row, run: str) -> Extract:
    kind = _WORDS.get(row.name, row.name)
    if kind not in OBSERVED:
        raise TimelineError(f"{row.name} at {row.at:g} s: neither a log that was given, nor an observer, nor `end`")
    try:
        said = orjson.loads(row.what)
    except orjson.JSONDecodeError as error:
        raise TimelineError(f"{row.name} at {row.at:g} s: {error}") from None
    if not isinstance(said, dict) or not all(isinstance(value, str | int | float) for value in said.values()):
        raise TimelineError(f"{row.name} at {row.at:g} s: the attributes are an object of texts and numbers")
    event = Event(Origin(kind, 0, 0, NOBODY, kind), str(said.pop("event", row.name)), said, at=row.at)
    return Extract(kind, run, (event,))
