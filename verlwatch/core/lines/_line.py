"""What a kind of line sees and says: a message freed of its envelope in, numbers or a fact out.

A kind knows nothing of files, positions or time: the Reader adds those.  It never guesses: what a cut may have
shortened is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from verlwatch.core.types import NOBODY, Writer

_ROLLOUT_WORKERS = ("WorkerDict", "AgentLoopWorker", "RewardLoopWorker", "RewardManager", "vLLM", "SGLang")


class Line(NamedTuple):
    """One message of one writer, without prefix, colours, log level and dedup suffix.

    ``cut`` says what is known of the message's end: True, the rest is missing; False, it is whole; None, it ended like
    any other line, which a cut one does too when Ray publishes its parts as lines.  ``repeated`` is the N of Ray's
    ``[repeated Nx across cluster]``, 0 without it.  ``is_bar`` marks a progress bar, whose text is written to stderr
    and therefore may stand between the parts of a message that went to stdout.
    """

    text: str
    writer: Writer = NOBODY
    cut: bool | None = None
    repeated: int = 0
    is_bar: bool = False

    @property
    def from_rollout(self) -> bool:
        """Whether the writer prints model output, which may imitate any line of the trainer."""
        name = self.writer.name
        return name.startswith(_ROLLOUT_WORKERS) or "Rollout" in name


class Numbers(NamedTuple):
    """The values of one step under the line's own names; becomes Samples.

    ``is_rest`` is given by a line whose end may be missing: it tells whether a later message is that end.  The values
    then leave out whatever the cut may have shortened.
    """

    step: int
    values: Mapping[str, float]
    decimals: int | None = None
    is_rest: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened; becomes an Event of this name."""

    name: str
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)


class Kind(Protocol):
    """A kind of line: a module with these three names.

    ``NEEDLES`` are literals of which at least one stands in every line of the kind: lines without any are not even
    decoded.  ``parse`` gets each message of such a line, and answers None to one that is not its kind.
    """

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """The kind's name, as records carry it."""

    @property
    def NEEDLES(self) -> tuple[bytes, ...]:  # noqa: N802 - a module's constant
        """Literals, at least one of which stands in every line of the kind."""

    def parse(self, line: Line, /) -> Numbers | Fact | None:
        """What the message says; None if it is not of this kind or too much of it is missing."""
