"""A message in Block Kit, as both of Slack's ways in take it.

Limits are those of docs.slack.dev: 50 blocks, 3000 characters a section, 150 a header, 10 fields.  Text is escaped also
where it is plain, and what would format is replaced by look-alikes: a log may hold anything.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from verlwatch.shell.notifiers._text import clean, emoji
from verlwatch.shell.notifiers._words import incident_named, reason_word, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verlwatch.core.types import Message

_HEADER = 140  # of 150, with room for the emoji
_SECTION = 2900  # of 3000, with room for signs around the text
_FIELD = 500
_FIELDS = 10
_ADVICE = 600
_LINK = 1000
_BLOCK_ID = 255


def shown(message: Message, dedup_key: str) -> dict[str, Any]:
    """The whole message: top-level ``text`` for the lock screen, blocks for the channel, the id on the last of them."""
    return _payload(f"{emoji(message)} {mrkdwn(message.title)}", _blocks(message, dedup_key))


def entry(message: Message, dedup_key: str) -> dict[str, Any]:
    """The same as an entry of a timeline: why it was sent first, and what was known then."""
    why = f"{emoji(message)} *{mrkdwn(reason_word(message))}* · {mrkdwn(message.title)}"
    return _payload(why, _entry_blocks(message, dedup_key, why))


def _payload(text: str, blocks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"text": text, "unfurl_links": False, "unfurl_media": False, "blocks": list(blocks)}


def escaped(text: str, limit: int) -> str:
    """Cleaned text in which Slack finds no mention, link or entity, at most ``limit`` units as Slack gets it."""
    text = clean(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"@(?=(?:here|channel|everyone)\b)", "＠", text, flags=re.IGNORECASE)  # noqa: RUF001 - a look-alike
    if _units(text) <= limit:
        return text
    start = text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore")
    return re.sub(r"&[a-z]*$", "", start) + "…"


def _units(text: str) -> int:
    """Length of the text where characters outside the basic plane count double: no counting of Slack's is stricter."""
    return len(text.encode("utf-16-le")) // 2


def mrkdwn(text: str, limit: int = 300) -> str:
    """`escaped`, and without the signs that would format or end a code block.

    The look-alikes mean nothing to a shell either: a message shows commands for people to copy.
    """
    return escaped(text, limit).translate({ord("`"): "ˋ", ord("*"): "∗", ord("~"): "∼"})  # noqa: RUF001 - look-alikes


def _blocks(message: Message, dedup_key: str) -> Iterator[dict[str, Any]]:
    say = words(message)
    yield {"type": "header", "text": _plain(f"{emoji(message)} {escaped(message.title, _HEADER)}")}
    if summary := escaped(message.summary, _SECTION):
        yield {"type": "section", "text": _plain(summary)}
    yield from _facts(message)
    if bars := mrkdwn(message.sparkline):
        yield {"type": "section", "text": _mrkdwn(f"`{bars}`  {mrkdwn(message.phase)}{say.comma}{say.recent}")}
    yield from _evidence(message)
    if lines := _fitting((mrkdwn(line, _ADVICE) for line in message.advice), say.more):
        yield {"type": "section", "text": _mrkdwn("\n• ".join([f"*{say.advice}*", *lines]))}
    yield _context(_footer(message), dedup_key)


def _entry_blocks(message: Message, dedup_key: str, why: str) -> Iterator[dict[str, Any]]:
    yield {"type": "section", "text": _mrkdwn(why)}
    if summary := escaped(message.summary, _SECTION):
        yield {"type": "section", "text": _plain(summary)}
    yield from _facts(message)
    yield from _evidence(message)
    yield _context((f"{words(message).incident} `{mrkdwn(message.incident)}`", _date(message)), dedup_key)


def _facts(message: Message) -> Iterator[dict[str, Any]]:
    facts = message.facts[:_FIELDS]
    if fields := [_mrkdwn(f"*{mrkdwn(label)}*\n{mrkdwn(value, _FIELD)}") for label, value in facts]:
        yield {"type": "section", "fields": fields}


def _evidence(message: Message) -> Iterator[dict[str, Any]]:
    if lines := _fitting(map(mrkdwn, message.evidence), words(message).more):
        yield {"type": "section", "text": _mrkdwn("```" + "\n".join(lines) + "```")}


def _context(parts: Iterable[str], dedup_key: str) -> dict[str, Any]:
    return {"type": "context", "block_id": dedup_key[-_BLOCK_ID:], "elements": [_mrkdwn(" · ".join(parts))]}


def _footer(message: Message) -> Iterator[str]:
    say = words(message)
    if incident := incident_named(message, f"`{mrkdwn(message.incident)}`"):
        yield incident
    yield mrkdwn(message.run)
    yield mrkdwn(message.rule)
    yield _date(message)
    link = escaped(message.link, _LINK)
    if re.fullmatch(r"https?://[!-~]+", link) and "|" not in link:
        yield f"<{link}|{say.page}>"
    elif link:
        yield f"`{mrkdwn(message.link, _FIELD)}`"


def _date(message: Message) -> str:
    """Slack shows it in the reader's own time zone."""
    at = datetime.fromtimestamp(message.at, UTC)
    return f"<!date^{int(message.at)}^{{date_short_pretty}} {{time_secs}}|{at:%Y-%m-%d %H:%M:%S} UTC>"


def _fitting(lines: Iterable[str], more: str) -> list[str]:
    """The first lines that fit into one section, and a word on how many do not.  Empty lines say nothing."""
    kept: list[str] = []
    left = 0
    room = _SECTION - len("What to try… and 999 more")
    for line in filter(None, lines):
        room -= len("\n• ") + _units(line)
        if room >= 0 and not left:
            kept.append(line)
        else:
            left += 1
    return [*kept, more.format(left)] if left else kept


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": True}


def _mrkdwn(text: str) -> dict[str, Any]:
    """Verbatim: Slack makes no links or mentions of what merely looks like one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}
