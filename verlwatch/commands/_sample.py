"""What lines of the user's own find in a log, for eyes: to write a pattern is to try it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verlwatch.commands._output import say
from verlwatch.core.lines import KINDS, Fact, Line, Numbers, Reader
from verlwatch.replay import pieces
from verlwatch.shell.own_lines import OwnLine, UnreadableError
from verlwatch.shell.printable import printable, shortened

SHOWN = 10
"""Matches of each pattern that are shown."""


@dataclass(eq=False, slots=True)
class _Probe:
    """Stands before all kinds of line, reads nothing, and notes what an own line finds."""

    own: OwnLine
    at: int = 0
    """The line that is being read."""
    missed: str = ""
    """The first message that holds the literal and does not match."""
    matches: int = 0
    unreadable: int = 0
    read: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def NAME(self) -> str:  # noqa: N802 - as a kind of line has it
        return self.own.NAME

    @property
    def NEEDLES(self) -> tuple[bytes, ...]:  # noqa: N802 - the same
        return self.own.NEEDLES

    def parse(self, line: Line) -> None:
        groups = self.own.groups(line)
        if groups is None:
            self.missed = self.missed or f"line {self.at}: {shortened(line.text)}"
            return
        self.matches += 1
        try:
            said = _value(self.own.read(groups, line))
        except UnreadableError as error:
            self.unreadable += 1
            said = f"not read: {error}"
        if self.matches <= SHOWN:
            self.shown.append(f"line {self.at}: {_held(groups)} -> {said}")

    @property
    def summary(self) -> str:
        """What to say of it at the end."""
        literal = self.own.NEEDLES[0].decode()
        if not self.matches:
            where = f"the pattern does not match {self.missed}" if self.missed else f"no line holds {literal!r}"
            return f"{self.NAME}: nothing; {where}"
        counts = {
            "matches" if self.matches > 1 else "match": self.matches,
            "not read": self.unreadable,
            "read by another kind of line first": self.matches - self.unreadable - self.read,
        }
        return f"{self.NAME}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def show(path: Path, own: Sequence[OwnLine], line_limit: int) -> bool:
    """Prints what each own line finds in a log, and what the built-in kinds read; True if each has read something.

    Raises:
        LogError: the log cannot be read to its end.
    """
    probes = [_Probe(line) for line in own]
    reader = Reader(str(path), line_limit=line_limit, kinds=(*probes, *KINDS, *own))
    read = Counter[str]()
    for number, line in enumerate(_lines(path), 1):
        for probe in probes:
            probe.at = number
        read.update(record.origin.kind for record in reader.feed(line, 0.0))
    read.update(record.origin.kind for record in reader.finish(0.0))
    for probe in probes:
        probe.read = read.pop(probe.NAME, 0)
        for text in (probe.summary, *(f"  {text}" for text in probe.shown)):
            say(printable(text))
        if probe.matches > SHOWN:
            say(f"  and {probe.matches - SHOWN} more")
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(read.items()))
    say(f"built-in kinds of line: {kinds or 'nothing'}")
    return all(probe.read for probe in probes)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a log, each with a newline: where a sample ends is no place where something is missing."""
    half = b""
    for data in pieces(path):
        *whole, half = (half + data).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if half:
        yield half + b"\n"


def _held(groups: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={shortened(text, 60)}" for name, text in groups.items())


def _value(said: Numbers | Fact) -> str:
    if isinstance(said, Numbers):
        ((key, value),) = said.values.items()
        return f"{key} = {value} in step {said.step}"
    attributes = dict(said.attributes)
    del attributes["line"]
    whose = "".join(f", {name} {attributes[name]}" for name in ("rank", "step") if name in attributes)
    return f"{attributes['metric']} = {attributes['value']} {attributes.get('unit', '')}".rstrip() + whose
