"""How long a source has been behind: since when the file has been longer than what is judged of it."""

from __future__ import annotations

from collections import deque

MARKS = 512


class Lag:
    """The sizes at which one source's file was seen and that are not judged yet, oldest first, each with its time."""

    def __init__(self) -> None:
        self._generation = 0
        self._marks: deque[tuple[int, float]] = deque()

    def see(self, generation: int, size: int, judged: int, now: float) -> None:
        """Takes a look: the file has ``size`` bytes, of which ``judged`` are judged."""
        if generation != self._generation:
            self._generation = generation
            self._marks.clear()
        while self._marks and self._marks[0][0] <= judged:
            self._marks.popleft()
        if size > max(judged, self._marks[-1][0] if self._marks else 0):
            self._marks.append((size, now))
        if len(self._marks) > MARKS:  # hours behind: every other one is precise enough
            self._marks = deque(list(self._marks)[::2])

    def seconds(self, judged: int, now: float) -> float:
        """For how long the oldest byte beyond ``judged`` has been seen; 0 for one that came after the last look."""
        return next((max(0.0, now - at) for size, at in self._marks if size > judged), 0.0)
