"""Lines of the user's own: a pattern with named groups finds a number in a line that no kind here knows.

The configuration describes them (``lines``); what runs the pattern comes from outside, as the core brings no engine
that a pattern cannot slow down.  verl prints no timing of a single rank, for example, so people add prints of theirs.

Groups: ``value`` is the number, ``metric`` what it measures, ``unit`` in what, ``rank`` whose it is, ``step`` when.
A number of a step that the trainer prints, of no rank, is the run's, and becomes Numbers.  Everything else is one
number of many, or printed by a process that prints model output as well: a Fact.

Units.  ns, us, ms, s, min, h become seconds, in capitals as well.  B, KB, MB, GB become GB as verl prints them: a GB
has 1024 MB, as a GiB has MiB.  Any other unit stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from verlwatch.core.lines._line import Attributes, Fact, Line, Numbers

GROUPS = ("value", "metric", "unit", "rank", "step")
LONGEST = 16_384
"""Characters of a message that is searched; a longer one is not."""

Search = Callable[[str], Mapping[str, str] | None]
"""What the groups of a pattern hold in a text, empty ones left out; None where nothing matches."""

_METRIC, _UNIT, _SHOWN = 100, 20, 60
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_CANONICAL: Mapping[str, tuple[str, float, float]] = {
    # unit: the canonical one, times, over
    "s": ("s", 1, 1),
    "ns": ("s", 1, 1e9),
    "us": ("s", 1, 1e6),
    "µs": ("s", 1, 1e6),
    "ms": ("s", 1, 1e3),
    "min": ("s", 60, 1),
    "h": ("s", 3600, 1),
    "B": ("GB", 1, 1 << 30),
    **{f"K{b}": ("GB", 1, 1 << 20) for b in ("B", "iB")},
    **{f"M{b}": ("GB", 1, 1 << 10) for b in ("B", "iB")},
    "GiB": ("GB", 1, 1),
}


_TIMES = frozenset(unit for unit, (canonical, _, _) in _CANONICAL.items() if canonical == "s")


class UnreadableError(ValueError):
    """A pattern matched, but what a group holds is not what it stands for; the text says which."""


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A kind of line as the configuration describes it.

    ``search`` looks anywhere in a message; ``unit`` stands where the line itself does not say one.
    """

    NAME: str
    NEEDLES: tuple[bytes, ...]
    search: Search
    unit: str = ""

    def parse(self, line: Line) -> Numbers | Fact | None:
        """What the pattern finds in the message; None if it does not match, or finds what is no number.

        Of a line whose end is missing nothing is read: a digit may be missing, or the unit.
        """
        groups = self.groups(line)
        if groups is None:
            return None
        try:
            return self.read(groups, line)
        except UnreadableError:
            return None

    def groups(self, line: Line) -> Mapping[str, str] | None:
        """What the pattern's groups hold in the message."""
        return None if line.cut or len(line.text) > LONGEST else self.search(line.text)

    def read(self, groups: Mapping[str, str], line: Line) -> Numbers | Fact:
        """What the groups say.

        Raises:
            UnreadableError: a group holds what it cannot stand for.
        """
        value, unit = _canonical(_number(groups.get("value", "")), groups.get("unit", self.unit))
        metric = groups.get("metric", self.NAME)
        if len(metric) > _METRIC or not metric.isprintable():
            raise UnreadableError(f"metric {metric[:_SHOWN]!r} is no name of at most {_METRIC} characters")
        whole = {name: _whole(name, groups[name]) for name in ("rank", "step") if name in groups}
        if "step" in whole and "rank" not in whole and not line.from_rollout:
            return Numbers(whole["step"], {f"own/{metric}": value})
        said: Attributes = {"line": self.NAME, "metric": metric, "value": value}
        return Fact("own", said | ({"unit": unit[:_UNIT]} if unit else {}) | whole)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UnreadableError(f"value {text[:_SHOWN]!r} is no number")
    return float(text)


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise UnreadableError(f"{name} {text[:_SHOWN]!r} is no whole number")
    return int(text)


def _canonical(value: float, unit: str) -> tuple[float, str]:
    word = unit.lower() if unit.lower() in _TIMES else unit  # sizes mean what they are in capitals
    canonical, times, over = _CANONICAL.get(word, (unit, 1, 1))
    value = value * times / over
    if not isfinite(value):
        raise UnreadableError("value is too large")
    return value, canonical
