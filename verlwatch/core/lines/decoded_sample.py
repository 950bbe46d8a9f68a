"""A sample that the reward manager shows: prompt, response, what was right, and the score.

    [prompt] user
    How many z are there in word o-u-z-z?
    [response] There are two.
    [ground_truth] 2
    [score] 1.0

Source: verl ``workers/reward_manager/naive.py`` (and ``dapo.py``, ``batch.py``), since 0.3, for the first of each
validation; every key of a score that is a dict stands in a row of its own (``[acc] True``, ``[pred] 2``).

The text is the model's and may imitate any line, so nothing is believed that stands before a row ``[ground_truth]`` or
between it and the last row ``[key]`` that follows at once.  Two imitations cannot be told from the real ones: a whole
sample inside of a response, up to its score, and what follows in further lines of a value that is the model's own.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Line, Said, Take

NAME: Final = "decoded_sample"
NEEDLES: Final = (b"[prompt]", b"[response]")

_BEGINS = ("[prompt]", "[response]")
_ANSWER = "[ground_truth]"
_ROW = re.compile(r"\[([A-Za-z_])[^\[\]]{0,79}\](?: |$)")


def parse(line: Line) -> Sample | None:
    """Its rows up to the score; nothing is told of it."""
    return Sample() if line.text.startswith(_BEGINS) else None


class Sample:
    """Everything that its writer prints up to the score."""

    LINES = 3000
    BYTES = 1 << 18

    def __init__(self) -> None:
        self._is_answered = False
        self._is_scored = False

    def take(self, line: Line, said: Said | None) -> Take:
        """What was right, and the rows that follow it, show that all before them was text; models write scores too."""
        text = line.text
        if text.startswith(_ANSWER):
            self._is_answered, self._is_scored = True, False
            return Take.PROVEN
        if not self._is_answered:
            return Take.DOUBTED
        if text.startswith(_BEGINS):
            return Take.ENDED
        if (row := _ROW.match(text)) and (said is None or row[1].islower()):  # else ``[INFO] ...``, which is no key
            self._is_scored = True
            return Take.PROVEN
        return Take.ENDED if self._is_scored else Take.DOUBTED  # an answer may have several lines

    def close(self) -> None:
        """Model output is no record."""
