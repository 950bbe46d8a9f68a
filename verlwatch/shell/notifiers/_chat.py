"""What the bots of Feishu, DingTalk and WeCom have in common: harmless Markdown within a size, and answers with codes.

None of the three documents an escape that all its clients honour.  So what could be a mention, a link, a tag or a
format is written with a look-alike: it reads the same and means nothing, nor does it to a shell into which a command of
the message is copied.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verlwatch.core.types import Message
from verlwatch.shell.notifiers import _http
from verlwatch.shell.notifiers._base import PermanentError, TransientError
from verlwatch.shell.notifiers._text import clean
from verlwatch.shell.notifiers._words import incident_named, rule_and_reason, words

if TYPE_CHECKING:
    import aiohttp

_LOOK_ALIKES = str.maketrans("<>*`~", "＜＞∗ˋ∼")  # noqa: RUF001 - look-alikes are the point
_MENTION = re.compile(r"(?<![A-Za-z0-9._-])@|@(?![A-Za-z0-9])")
_LINK = re.compile(r"\](?=[(\[])")
_ENTITY = re.compile(r"&(?=[#A-Za-z])")
_FIRST = {"#": "＃", "-": "‐", "+": "＋", "=": "＝", "|": "｜"}  # noqa: RUF001 - look-alikes are the point
_FACT = 150
_LINES = 42


def neutral(text: str, limit: int = 300) -> str:
    """Cleaned text in which a chat finds no mention, link, tag, entity or format; a mail address stays one."""
    text = clean(text, limit).translate(_LOOK_ALIKES)
    text = _ENTITY.sub("＆", _LINK.sub("］", _MENTION.sub("＠", text)))  # noqa: RUF001 - look-alikes
    return _FIRST.get(text[:1], text[:1]) + text[1:]


def size(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(text.encode())


def cut(text: str, limit: int) -> str:
    """At most ``limit`` bytes of the text in UTF-8, cut between characters."""
    if size(text) <= limit:
        return text
    return text.encode()[: max(0, limit - size("…"))].decode(errors="ignore") + "…"


# ---------------------------------------------------------------------------------------------------- Markdown
def markdown(message: Message, dedup_key: str, head: str, limit: int, line_end: str) -> str:
    """``head`` and what the message says, as many lines as fit into ``limit`` bytes, and always the footer."""
    say = words(message)
    lines = [head, neutral(message.summary, 1000)]
    lines += [f"- **{neutral(label, _FACT)}**{say.colon}{neutral(value)}" for label, value in message.facts]
    if bars := neutral(message.sparkline):
        lines.append(f"{bars} {neutral(message.phase)}{say.comma}{say.recent}")
    lines += [f"> {neutral(line)}" for line in message.evidence]
    if message.advice:
        lines += [f"**{say.advice}**", *(f"- {neutral(line, 600)}" for line in message.advice)]
    link = page(message)
    last = footer(message, dedup_key) + (f" · [{say.page}]({link})" if link else "")
    return _fitting(list(filter(None, lines)), last, limit, line_end, say.more)


def _fitting(lines: list[str], last: str, limit: int, line_end: str, more: str) -> str:
    room = limit - size(f"{last}{line_end}{more}9999{line_end}")
    kept: list[str] = []
    for line in lines:
        room -= size(line + line_end)
        if room < 0 or len(kept) == _LINES:
            break
        kept.append(line)
    if not kept:
        kept = [cut(lines[0], room + size(lines[0]))]
    if len(kept) < len(lines):
        kept.append(more.format(len(lines) - len(kept)))
    return _joined([*kept, last], line_end)


def _joined(lines: list[str], line_end: str) -> str:
    """Entries of a list follow each other, however far apart other lines are."""
    text = lines[0]
    for before, line in pairwise(lines):
        text += ("\n" if before.startswith("- ") and line.startswith("- ") else line_end) + line
    return text


def footer(message: Message, dedup_key: str) -> str:
    """Who, what and when, and how to name it; and how to get to the page where that is no link."""
    say = words(message)
    at = datetime.fromtimestamp(message.at, UTC)
    parts = [
        "verlwatch",
        neutral(message.run, 100),
        *(neutral(word, 100) for word in rule_and_reason(message)),
        incident_named(message, neutral(message.incident, 64)),
        f"{say.message} {neutral(dedup_key, 128)}",
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
    ]
    if message.link and not page(message):
        parts.append(neutral(message.link))
    return " · ".join(filter(None, parts))


def page(message: Message) -> str:
    """The link, if it is a URL that can stand in parentheses."""
    link = clean(message.link, 500)
    return link if re.fullmatch(r"https?://[!-'*-~]+", link) else ""


# ---------------------------------------------------------------------------------------------------- sending
class Refusal(NamedTuple):
    """What a code means: the remedy in words where it is final, else after how many seconds to try again."""

    remedy: str = ""
    wait_s: float | None = None


def signature(key: str, text: str) -> str:
    """Base64 of HMAC-SHA256."""
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), hashlib.sha256)).decode()


async def post(
    session: aiohttp.ClientSession, url: str, body: Mapping[str, Any], proxy: str | None, channel: str
) -> dict[str, Any]:
    """The JSON object that the channel answers, whatever it says in it; of a status that says no, only a code for it.

    Raises:
        TransientError: there is none: network trouble, a limit, an answer of somebody else.
        PermanentError: a status that says no and nothing more.
    """
    with _http.network_errors():
        async with session.post(
            url,
            data=orjson.dumps(body),
            headers={"Content-Type": "application/json; charset=utf-8"},
            proxy=_http.proxy_for(url, proxy),
            allow_redirects=False,
        ) as answer:
            status, text = answer.status, await answer.read()
            wait = _http.retry_after(answer.headers, time.time())
    if status in _http.RETRY_STATUS or status >= 500:  # noqa: PLR2004 - the class of server errors
        raise TransientError(f"{channel} answered {status}", wait)
    if 300 <= status < 400:  # noqa: PLR2004 - the class of redirects
        raise PermanentError(f"{channel} answered {status}; redirects are not followed: configure the final URL")
    try:
        said = orjson.loads(text)
    except ValueError:
        said = None
    if isinstance(said, dict) and (status < 300 or any(map(_is_no, (said.get("code"), said.get("errcode"))))):  # noqa: PLR2004 - the class of yes
        return said
    if status < 300:  # noqa: PLR2004 - the class of yes
        raise TransientError(f"the answer was {status} but not {channel}'s; is a proxy or another server in its place?")
    raise PermanentError(f"{channel} answered {status}; check that the file holds the URL of a bot")


def _is_no(code: object) -> bool:
    return isinstance(code, int) and code != 0


def judge(channel: str, code: object, refusals: Mapping[int, Refusal]) -> None:
    """Returns for code 0, raises for a no.  The channel's own text is not repeated: it may quote what was sent."""
    if code == 0 and code is not False:
        return
    if not isinstance(code, int) or isinstance(code, bool):
        raise TransientError(f"the answer has no code; is a proxy or another server in the place of {channel}?")
    refusal = refusals.get(code)
    if refusal is None:
        raise PermanentError(f"{channel} answered code {code}; its documentation says what that means")
    if refusal.remedy:
        raise PermanentError(f"{channel} answered code {code}: {refusal.remedy}")
    raise TransientError(f"{channel} answered code {code}: too many messages, or it is overloaded", refusal.wait_s)
