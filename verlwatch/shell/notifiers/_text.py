"""A message as plain text, and the cleaning that text from a log needs before any channel may have it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from verlwatch.core.types import Message
from verlwatch.shell.notifiers._words import incident_named, rule_and_reason, words
from verlwatch.shell.printable import TEXT_LIMIT, shortened

# ESC [ … letter (colours, cursor), ESC ] … BEL or ESC \ (titles, links), ESC and one more; `[` may also be one byte.
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """``text`` on one line of at most ``limit`` characters, without terminal sequences and white space runs.

    Other characters that would steer or hide (bidirectional, zero width, control) show as escapes.
    """
    return shortened(" ".join(_ANSI.sub("", text).split()), limit)


def emoji(message: Message) -> str:
    """How things stand, in one sign: red and orange are open, a tick is over, a square is no longer watched.

    A flag is a run that is done.
    """
    match message.reason:
        case "finished":
            return "🏁"
        case "resolved" | "accepted":
            return "✅"
        case "run ended" | "expired":
            return "⏹️"
        case "escalated":
            return "🔴"
    return {"critical": "🔴", "warning": "🟠", "info": "🔵"}[message.severity]


def message_text(message: Message, timezone: tzinfo | None = UTC) -> str:
    """The whole message for a terminal, a log or a plain mail; several lines, no trailing newline.

    ``timezone`` is that of its time, None leaves the time out: a replayed log has none.
    """
    at = datetime.fromtimestamp(message.at, timezone).isoformat(sep=" ", timespec="seconds") if timezone else ""
    lines = [f"{emoji(message)} {clean(message.title)}", f"   {clean(message.summary, 1000)}"]
    lines += [f"   {clean(label) + ':':<22}{clean(value)}" for label, value in message.facts]
    if message.sparkline:
        lines.append(f"   {clean(message.phase) + ':':<22}{clean(message.sparkline)}")
    lines += [f"   | {clean(line)}" for line in message.evidence]
    lines += [f"   → {clean(line, 1000)}" for line in message.advice]
    named = incident_named(message, clean(message.incident))
    what = filter(None, (named, *map(clean, rule_and_reason(message)), at))
    lines.append(f"   {words(message).comma.join(what)}")
    if message.link:
        lines.append(f"   {clean(message.link, 2000)}")
    return "\n".join(lines)
