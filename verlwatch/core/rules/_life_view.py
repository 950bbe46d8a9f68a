"""What the rules about the life of a run see: one run at one moment, by the clock and not by steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from verlwatch.core.types import Severity

Attributes = Mapping[str, str | int | float]
SUBJECT = "run"
"""What the rules about the life of a run speak of: the one that is sure of most leads the incident."""


class Fault(NamedTuple):
    """A fault that the log told: its class (the kind of line), what it says, and its own words."""

    kind: str
    said: Attributes
    excerpt: str
    severity: Severity
    writer: str
    at: float


class Stage(NamedTuple):
    """What a run does: in a word (a phase, ``start``, ``first step``, ``step``), since when, and who says so."""

    name: str
    since_at: float
    words: str


class Allowance(NamedTuple):
    """How long a run may go without progress, and why so long."""

    seconds: float
    why: str


class Printing(NamedTuple):
    """What one process goes on printing: lines seen, the last of them and when."""

    writer: str
    lines: int
    last: str
    at: float


NOTHING = Allowance(0.0, "")
START = Stage("start", 0.0, "")


@dataclass(frozen=True, slots=True)
class LifeView:
    """A run at ``now``.

    ``step`` is the last one (-1: none yet) of ``planned``; ``waited_s`` how long ago there was progress, None where
    that is not to be judged: the run is over, or its logs are not seen.  ``allowed`` says how long that may be,
    ``heard_s`` how long ago any line came, ``quiet_s`` how long the run may say nothing at all.  ``unseen`` names logs
    that cannot be read and why, ``unseen_s`` for how long.  ``faults`` are those since the last step, once no more of
    them are expected; ``gone`` is the training process that has ended, ``job`` how its batch job stands, ``ended`` what
    in the log says that it has ended.  ``lived_s`` is how long the attempt has lasted, ``ledger`` what the run did.
    """

    run: str
    now: float
    attempt: int = 1
    step: int = -1
    planned: int | None = None
    waited_s: float | None = None
    allowed: Allowance = NOTHING
    heard_s: float = 0.0
    quiet_s: float = float("inf")
    stage: Stage = START
    printing: tuple[Printing, ...] = ()
    trainer: str = ""
    unseen: tuple[str, ...] = ()
    unseen_s: float = 0.0
    faults: tuple[Fault, ...] = ()
    gone: Attributes | None = None
    job: Attributes = field(default_factory=dict)
    ended: str = ""
    is_over: bool = False
    lived_s: float = 0.0
    ledger: tuple[tuple[str, str], ...] = ()

    def last_step(self) -> str:
        """How far it has come, in words."""
        if self.step < 0:
            return "no step yet" + (f" of {self.planned}" if self.planned else "")
        return f"step {self.step}" + (f" of {self.planned}" if self.planned else "")

    def since(self) -> str:
        """After what it goes on or hangs, in words."""
        return f"after {self.last_step()}" if self.step >= 0 else "since its start"

    def at(self) -> str:
        """Where it ended, in words."""
        return f"at {self.last_step()}" if self.step >= 0 else "before its first step"
