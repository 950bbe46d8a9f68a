"""What a kind of line sees and says: a message freed of its envelope in, numbers or a fact out.

A kind knows nothing of files, positions or time: the Reader adds those.  It never guesses: what a cut may have
shortened is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from verlwatch.core.lines._secrets import blanked
from verlwatch.core.types import NOBODY, Severity, Writer

TEXT_LENGTH: Final = 300
"""Characters that a text among the attributes, or an excerpt, holds at most."""

Attributes = dict[str, str | int | float]
"""What an event tells, by name."""

_SHOWS_SAMPLES = re.compile("Reward(?!Model)|compute_reward|AgentLoop|ExecutionWorker")
_FROM_ROLLOUT = re.compile("Reward|compute_reward|AgentLoop|ExecutionWorker|WorkerDict|vLLM|SGLang|Rollout")


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
        """Whether the writer is no trainer: its model's output may imitate any line of one."""
        return _FROM_ROLLOUT.search(self.writer.name) is not None

    @property
    def shows_samples(self) -> bool:
        """Whether the writer scores samples or runs their tools: it prints what models and sandboxes say.

        It has no device and no engine either, so a line of torch, vLLM or SGLang is an imitation as well; a worker of
        training or of an engine prints those as they are.
        """
        return _SHOWS_SAMPLES.search(self.writer.name) is not None


class Numbers(NamedTuple):
    """The values of one step under the line's own names; becomes Samples."""

    step: int
    values: Mapping[str, float]
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a line tells; becomes an Event of this name.

    ``severity`` is info for what happened, warning or critical for a fault.  ``excerpt`` is the line itself where it is
    left empty.
    """

    name: str
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    severity: Severity = "info"
    excerpt: str = ""


def known(attributes: Mapping[str, str | float | None]) -> Attributes:
    """Those that are known: neither None nor an empty text.  Long texts are cut, secrets in them blanked."""
    return {
        name: blanked(value)[:TEXT_LENGTH].strip() if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None and value != ""
    }


def fault(
    kind: str, attributes: Mapping[str, str | float | None], severity: Severity = "critical", excerpt: str = ""
) -> Fact:
    """A fault of the class that is the kind's name, with those attributes that are known."""
    return Fact("fault", {"class": kind, **known(attributes)}, severity, excerpt)


class Take(Enum):
    """What a Block answers to a further message of its writer."""

    IGNORED = "it is no part; the block goes on waiting"
    TAKEN = "it is a part; there may be more"
    DONE = "it is the last part"
    ENDED = "it is no part, and there will be none after it"
    DOUBTED = "it is a part, and what a kind reads in it is not meant so, if the block is proven to be what it seems"
    PROVEN = "it is a part, and nothing of what was doubted was meant so; there may be more"


class Block(Protocol):
    """A line that others of the same writer belong to: what they say together is known when they are all there.

    A kind's `parse` returns one for the first line.  It is closed by its own answer, by LINES, BYTES or seconds without
    its end, or at the end of the source.  It is kept in memory alone: after a restart it is read again.
    """

    LINES: int
    """So many further lines of the source, whoever wrote them, it waits for."""
    BYTES: int
    """So many further bytes of the source it waits for."""

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Looks at the writer's next message, of which a kind has read ``said``.  Progress bars are not shown to it."""

    def close(self) -> Numbers | Fact | None:
        """What all of it says, as far as it came."""


Said = Numbers | Fact | Block


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

    def parse(self, line: Line, /) -> Said | None:
        """What the message says; None if it is not of this kind or too much of it is missing."""
