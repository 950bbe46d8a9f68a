"""What the fakes of chats have in common: limits that count, and signs of markup that a sender did not mean."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LINK = re.compile(r"\[([^\[\]()]*)\]\((https?://[^\s()]+)\)")
_STEERING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_MENTION = re.compile(r"(?<![A-Za-z0-9._-])@|@(?![A-Za-z0-9])")


class Limit:
    """At most ``count`` requests in any ``seconds``; who sends more is refused, for ``penalty`` seconds if given."""

    def __init__(self, count: int, seconds: float, now: Callable[[], float], penalty: float = 0.0) -> None:
        self._count, self._seconds, self._now, self._penalty = count, seconds, now, penalty
        self._times: deque[float] = deque()
        self._refuses_until = float("-inf")

    def exceeded(self) -> bool:
        now = self._now()
        while self._times and now - self._times[0] >= self._seconds:
            self._times.popleft()
        if now < self._refuses_until:
            return True
        if len(self._times) >= self._count:
            self._refuses_until = now + self._penalty
            return True
        self._times.append(now)
        return False


def foreign_markup(text: str, labels: set[str]) -> list[str]:
    """What a chat would take for a mention, a link, a tag or code, apart from links to pages called ``labels``."""
    rest = _LINK.sub(lambda found: "" if found[1] in labels else found[0], text)
    found = [f"{sign!r}" for sign in ("<", "](", "`", "~") if sign in rest]
    found += ["mention"] if _MENTION.search(rest) else []
    found += ["entity"] if re.search(r"&[#A-Za-z]", rest) else []
    found += ["bold"] if rest.count("**") % 2 else []
    return found + [f"steers {c!r}" for c in set(rest) - {"\n"} if unicodedata.category(c) in _STEERING]
