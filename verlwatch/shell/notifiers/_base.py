"""What every notifier is: a configuration, a pure rendering, and a send that answers yes or raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp

    from verlwatch.core.types import Language, Message
    from verlwatch.fields import ReceiverConfig


class DeliveryError(Exception):
    """A receiver did not take a message.  The text is for people and holds no secret: no URL beyond the host."""


class TransientError(DeliveryError):
    """The same message may be taken later; ``retry_after`` is the seconds the receiver asked for, if it did."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class PermanentError(DeliveryError):
    """This message will never be taken, or not before a person changes something."""


class Place(Protocol):
    """What a channel keeps of one incident: the message that it edits, the alert that it repeats.

    ``note`` returns once the text will survive a restart.
    """

    async def read(self) -> str:
        """What was noted last; empty if nothing was."""
        ...

    async def note(self, text: str) -> None:
        """Replaces it; an empty text forgets it."""
        ...


class Notifier(Protocol):
    """A way to tell people; each derives from it, and says of its channel what differs from what stands here.

    ``render`` is pure: what a message looks like for this channel, escaped and within its limits.  ``send`` returns
    once the receiver has said yes and raises TransientError or PermanentError otherwise; it never retries by itself.
    ``dedup_key`` is the same for every attempt at one message and visible to the receiver.
    """

    TYPE: ClassVar[str]
    """The word after ``type:`` in the configuration."""
    MIN_INTERVAL_S: ClassVar[float] = 0.0
    """Least seconds between two messages that the channel allows."""
    RATE: ClassVar[tuple[int, float] | None] = None
    """(n, seconds): the channel takes n messages in any so many seconds.  Where more wait, they come as one digest."""
    DIGEST: ClassVar[bool] = True
    """False where each incident is an alert of its own in the channel: what is over RATE waits instead."""
    PAGES: ClassVar[bool] = False
    """True where what is open calls somebody until it is closed: a test must end."""
    Config: ClassVar[type[ReceiverConfig]]
    language: Language = "en"
    """Of the messages that `render` is given."""

    def __init__(self, config: Any, session: aiohttp.ClientSession) -> None:
        """Reads the secrets.  Raises SecretError."""

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """The payload, without secrets."""
        ...

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        """Delivers what `render` gave."""
        ...

    async def send_at(self, payload: dict[str, Any], dedup_key: str, place: Place) -> None:  # noqa: ARG002 - for those that need it
        """As `send`, for a channel that needs to know what it has of the incident; what `Deliver` calls."""
        await self.send(payload, dedup_key)

    def not_before(self, now: float) -> float:
        """When, from ``now`` on (epoch seconds), the channel likes to be sent something."""
        return now


@runtime_checkable
class Repeater(Notifier, Protocol):
    """A way to tell people that forgets: every RESEND_S it is sent again what was noted of open incidents."""

    RESEND_S: ClassVar[float]

    async def resend(self, places: Sequence[str]) -> None:
        """Sends what was noted; raises as `send` does."""
        ...
