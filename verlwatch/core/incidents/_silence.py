"""Silences: people say of what they do not want to be told, and for how long."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from verlwatch.core.incidents._grouping import fits, is_derived, places
from verlwatch.core.types import Diagnosis, Incident

LONGEST_S = 30 * 86_400.0
"""A silence that nobody ends, and no end of a run, ends after so long: nothing is silent for ever by oversight."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Incidents that fit all five patterns (``*``, ``?``, ``[…]``) are not told until ``ends_at`` (epoch seconds).

    Without it the silence lasts until the runs that it fits have ended.  One that names a host or a rank fits only
    what is said of hosts or ranks.
    """

    id: str
    run: str = "*"
    rule: str = "*"
    phase: str = "*"
    host: str = "*"
    rank: str = "*"
    starts_at: float = 0.0
    ends_at: float | None = None
    comment: str = ""
    author: str = ""

    def covers(self, incident: Incident) -> bool:
        """Whether it fits all that leads the incident: a slow phase beside a silenced one is told."""
        leading = [d for d in incident.diagnoses if not is_derived(d)] or list(incident.diagnoses)
        return fits(incident.run, self.run) and all(self._fits(diagnosis) for diagnosis in leading)

    def fits_run(self, run: str) -> bool:
        """Whether it has to do with that run."""
        return fits(run, self.run)

    def _fits(self, diagnosis: Diagnosis) -> bool:
        found = places(diagnosis.scope)
        return (
            fits(diagnosis.rule, self.rule)
            and fits(diagnosis.subject, self.phase)
            and _all_fit(self.host, found.get("host", ()))
            and _all_fit(self.rank, found.get("rank", ()))
        )

    def holds(self, now: float) -> bool:
        """Whether it goes on, as far as time tells."""
        return now < (self.starts_at + LONGEST_S if self.ends_at is None else self.ends_at)


class Silences:
    """Those that are in force.  Changed only by `add`, `remove` and `expire`; all else reads."""

    def __init__(self) -> None:
        self._known: dict[str, Silence] = {}

    def __iter__(self) -> Iterator[Silence]:
        return iter(self._known.values())

    def add(self, silence: Silence) -> None:
        """Takes one up, in the place of one of the same id."""
        self._known[silence.id] = silence

    def remove(self, key: str) -> Silence | None:
        """Ends one; None if there is none of that id."""
        return self._known.pop(key, None)

    def expire(self, now: float, runs: Mapping[str, bool]) -> list[Silence]:
        """Ends those whose time is up, and those until the end of runs that have all ended.

        ``runs`` says of each known run whether it has ended.
        """
        over = [one for one in self._known.values() if not one.holds(now) or _has_ended(one, runs)]
        for silence in over:
            del self._known[silence.id]
        return over

    def covering(self, incident: Incident, now: float) -> Silence | None:
        """The first that keeps ``incident`` from being told."""
        return next((one for one in self._known.values() if one.holds(now) and one.covers(incident)), None)


def silence_id(fields: Mapping[str, Any], now: float) -> str:
    """Short, and the same for the same words at the same time."""
    text = "\0".join(f"{name}={fields[name]}" for name in sorted(fields))
    return "s" + hashlib.sha256(f"{now!r}\0{text}".encode()).hexdigest()[:7]


def silence_from(data: Mapping[str, Any]) -> Silence:
    """The inverse of `asdict`."""
    return Silence(**data)


def silence_state(silence: Silence) -> dict[str, Any]:
    """JSON-safe; the inverse of `silence_from`."""
    return asdict(silence)


def _has_ended(silence: Silence, runs: Mapping[str, bool]) -> bool:
    ended = [ended for run, ended in runs.items() if fits(run, silence.run)]
    return silence.ends_at is None and bool(ended) and all(ended)


def _all_fit(pattern: str, values: Iterable[str]) -> bool:
    found = tuple(values)
    return pattern == "*" or (bool(found) and all(fits(value, pattern) for value in found))
