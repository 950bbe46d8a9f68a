"""What every notifier is: a configuration, a pure rendering, and a send that answers yes or raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message
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
    """A way to tell people.

    ``render`` is pure: what a message looks like for this channel, escaped and within its limits.  ``send`` returns
    once the receiver has said yes and raises TransientError or PermanentError otherwise; it never retries by itself.
    ``dedup_key`` is the same for every attempt at one message and visible to the receiver.
    """

    TYPE: ClassVar[str]
    """The word after ``type:`` in the configuration."""
    MIN_INTERVAL_S: ClassVar[float]
    """Least seconds between two messages that the channel allows."""
    Config: ClassVar[type[ReceiverConfig]]

    def __init__(self, config: Any, session: aiohttp.ClientSession) -> None:
        """Reads the secrets.  Raises SecretError."""

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """The payload, without secrets."""
        ...

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        """Delivers what `render` gave."""
        ...
