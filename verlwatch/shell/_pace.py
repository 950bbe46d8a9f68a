"""How often a channel may be sent something: its own limits, and the times that it dislikes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from verlwatch.shell.notifiers import Notifier


class Pace:
    """The pace of one receiver.

    A send counts from when it was answered, and the next one from when it begins: however long either takes, the
    channel sees no more of them in its window than it allows.
    """

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self.limit, self.window_s = notifier.RATE or (0, 0.0)
        self._sent: deque[float] = deque(maxlen=self.limit)
        self._answered_at = -math.inf

    def recall(self, times: Iterable[float]) -> None:
        """Takes back when an earlier process sent something."""
        self._sent.extend(sorted(times))

    def note(self, now: float) -> None:
        """Something was sent, and answered or given up on now."""
        self._sent.append(now)
        self._answered_at = now

    def set_back(self, seconds: float) -> None:
        """The clock was set back."""
        self._sent = deque((at - seconds for at in self._sent), self.limit)
        self._answered_at -= seconds

    def next(self, now: float) -> float:
        """The earliest time from ``now`` on for the next one."""
        at = max(now, self._answered_at + self._notifier.MIN_INTERVAL_S)
        if self.limit and len(self._sent) == self.limit:
            at = max(at, self._sent[0] + self.window_s)
        return self._notifier.not_before(at)

    def room(self, now: float) -> float:
        """How many the channel still takes in the current window."""
        if not self.limit:
            return math.inf
        return self.limit - sum(at > now - self.window_s for at in self._sent)
