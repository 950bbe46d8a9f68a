"""What every notifier is: a configuration, a pure rendering, and a send that answers yes or raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
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

    def not_before(self, now: float) -> float:
        """When, from ``now`` on (epoch seconds), the channel likes to be sent something."""
        return now
