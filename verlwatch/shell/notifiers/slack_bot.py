"""A Slack app that posts with its bot token: one message for each incident, edited in place, with a thread under it.

The channel shows how each incident stands now; the thread under its message tells how it went, an entry for each
notification, with an image of the series where Pillow is installed.  What calls for eyes again (worse, back again) is
shown in the channel as well, as an edit notifies nobody.

    first message      chat.postMessage                        into the channel
    later ones         chat.update, or a new message           where Slack lets nobody edit the old one any more
    each of them       chat.postMessage with thread_ts         the entry
    an image           files.getUploadURLExternal, POST, files.completeUploadExternal

Each step is noted as soon as Slack has said yes, and not done again when a later one fails.  Slack documents no way to
post once only: who is killed between its yes and the note posts the same again, with the same id in ``metadata`` and on
the last block.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import orjson
from pydantic import AfterValidator, Field

from verlwatch.fields import ReceiverConfig, SecretPath, Url
from verlwatch.shell.notifiers import _blocks, _slack_api
from verlwatch.shell.notifiers._base import DeliveryError, Notifier, TransientError
from verlwatch.shell.notifiers._chart import as_json, chart_of, chart_png
from verlwatch.shell.notifiers._slack_api import RefusedError, SlackApi
from verlwatch.shell.notifiers._text import clean

if TYPE_CHECKING:
    import aiohttp

    from verlwatch.core.types import Message
    from verlwatch.shell.notifiers._base import Place

IMAGE_S = 15.0
"""An image that takes longer is left out."""
_CANNOT_EDIT = frozenset(
    {
        "cant_update_message",
        "channel_not_found",
        "edit_window_closed",
        "is_inactive",
        "message_not_found",
    }
)
"""Words after which the incident goes on in a new message."""
_CANNOT_REPLY = frozenset(
    {
        "cannot_reply_to_message",
        "message_not_found",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "thread_not_found",
    }
)
_LOUD = frozenset({"escalated", "reopened"})


def parse_channel(text: str) -> str:
    """``text`` if it can name a channel."""
    if not text.isprintable() or not 0 < len(text.removeprefix("#")) <= 80 or set(text) & set(" ,<>&@"):  # noqa: PLR2004 - Slack's limit
        raise ValueError("must be the ID of a channel or its name; write for example C024BE91L or #training")
    return text


class SlackBotConfig(ReceiverConfig):
    """A Slack app with a bot token (scopes chat:write and, for images, files:write)."""

    type: Literal["slack_bot"]
    token_file: SecretPath = Field(description="File with the app's Bot User OAuth Token (`xoxb-…`).")
    channel: Annotated[str, AfterValidator(parse_channel)] = Field(
        description="ID of the channel, for example `C024BE91L`, or its name, `#training`. The app must be in it."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the channel has of an incident: its message, and how far the notification ``key`` has got.

    ``asked`` is the channel as configured then, ``first`` the notification that the message began with.
    """

    asked: str
    channel: str
    ts: str
    first: str
    key: str
    steps: int = 0
    """1: the message shows it; 2: so does the thread; 3: the image is there."""


class SlackBotNotifier(Notifier):
    """One channel."""

    TYPE: ClassVar[str] = "slack_bot"
    MIN_INTERVAL_S: ClassVar[float] = 1.2  # chat.postMessage takes one a second, chat.update fifty a minute
    DIGEST: ClassVar[bool] = False
    Config: ClassVar[type[ReceiverConfig]] = SlackBotConfig

    def __init__(self, config: SlackBotConfig, session: aiohttp.ClientSession) -> None:
        self._api = SlackApi(config.token_file, config.proxy, session, _slack_api.URL)
        self._channel = config.channel
        self._next_post_at = 0.0
        self._image_error = ""

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        """The message of the incident, the entry in its thread, and what to draw.

        The end of a run is told once: its message has no thread.
        """
        mark = {
            "event_type": "verlwatch_notification",
            "event_payload": {"incident": clean(message.incident), "id": clean(dedup_key)},
        }
        chart = None if message.reason in {"updated", "repeated"} else chart_of(message)
        is_all = message.reason == "finished"
        return {
            "message": {**_blocks.shown(message, dedup_key), "metadata": mark},
            "entry": None
            if is_all
            else {
                **_blocks.entry(message, dedup_key),
                "metadata": mark,
                "reply_broadcast": message.reason in _LOUD,
            },
            "image": {**as_json(chart), "title": clean(message.title)} if chart else None,
        }

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        """Posts a message with its thread, whatever there was before."""
        shown = await self._show(payload["message"], None, dedup_key)
        await self._draw(payload["image"], await self._reply(payload, shown))

    async def send_at(self, payload: dict[str, Any], dedup_key: str, place: Place) -> None:
        """Shows the notification in the channel; what an earlier try got done is not done again."""
        shown = self._read(await place.read())
        if shown is None or shown.key != dedup_key:
            shown = await self._show(payload["message"], shown, dedup_key)
            await place.note(_text(shown))
        if shown.steps == 1:
            shown = await self._reply(payload, shown)
            await place.note(_text(shown))
        if shown.steps == 2:  # noqa: PLR2004 - see Shown
            await self._draw(payload["image"], shown)
            await place.note(_text(replace(shown, steps=3)))

    def _read(self, text: str) -> Shown | None:
        """What was noted; None if there is nothing, or of another channel."""
        try:
            shown = Shown(**orjson.loads(text))
        except (ValueError, TypeError):
            return None
        return shown if shown.asked == self._channel else None

    async def _show(self, message: dict[str, Any], shown: Shown | None, key: str) -> Shown:
        """The incident's message as it must be now."""
        if shown is not None:
            try:
                await self._api.call("chat.update", _edit(message, shown))
            except RefusedError as error:
                if error.word not in _CANNOT_EDIT:
                    raise
            else:
                return replace(shown, key=key, steps=1)
        answer = await self._post({**message, "channel": self._channel})
        channel, ts = answer.get("channel"), answer.get("ts")
        if not (isinstance(channel, str) and channel and isinstance(ts, str) and ts):
            raise TransientError("Slack's answer does not say which message it posted; is another server in its place?")
        return Shown(self._channel, channel, ts, key, key, 1)

    async def _reply(self, payload: dict[str, Any], shown: Shown) -> Shown:
        """The entry in the thread; where Slack allows none, a new message if the old one was only edited."""
        if payload["entry"] is None:
            return replace(shown, steps=2)
        try:
            await self._post({**payload["entry"], "channel": shown.channel, "thread_ts": shown.ts})
        except RefusedError as error:
            if error.word not in _CANNOT_REPLY:
                raise
            if shown.first != shown.key:
                shown = await self._show(payload["message"], None, shown.key)
        return replace(shown, steps=2)

    async def _post(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """chat.postMessage, MIN_INTERVAL_S after the one before."""
        import asyncio  # noqa: PLC0415 - reading a configuration is faster without

        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._next_post_at - loop.time()))
        try:
            return await self._api.call("chat.postMessage", arguments)
        finally:
            self._next_post_at = loop.time() + self.MIN_INTERVAL_S

    async def _draw(self, image: dict[str, Any] | None, shown: Shown) -> None:
        """The image into the thread.  It is an ornament: where it fails the message has been told all the same."""
        import asyncio  # noqa: PLC0415 - reading a configuration is faster without

        if image is None:
            return
        chart = {name: value for name, value in image.items() if name != "title"}
        png = await asyncio.to_thread(chart_png, **chart)
        if png is None:
            return
        try:
            async with asyncio.timeout(IMAGE_S):
                file_id = await self._api.upload(png, "series.png", image["title"])
                files = [{"id": file_id, "title": image["title"]}]
                where = {"channel_id": shown.channel, "thread_ts": shown.ts}
                await self._api.call("files.completeUploadExternal", {"files": files, **where})
        except (DeliveryError, TimeoutError) as error:
            text = str(error) or f"no answer within {IMAGE_S:g} s"
            if text != self._image_error:
                _warn(text)
            self._image_error = text


def _warn(error: str) -> None:
    import structlog  # noqa: PLC0415 - reading a configuration is faster without

    structlog.get_logger(__name__).warning("image not shown", error=error)


def _edit(message: dict[str, Any], shown: Shown) -> dict[str, Any]:
    """The arguments of chat.update, which knows nothing of unfurling."""
    content = {name: message[name] for name in ("text", "blocks", "metadata")}
    return {**content, "channel": shown.channel, "ts": shown.ts}


def _text(shown: Shown) -> str:
    return orjson.dumps(asdict(shown)).decode()
