"""A sample that the reward manager shows: prompt, response, what was right, and the score.

    [prompt] user
    How many z are there in word o-u-z-z?
    [response] There are two.
    [ground_truth] 2
    [score] 1.0

Source: verl ``workers/reward_manager/naive.py`` (and ``dapo.py``, ``batch.py``), since 0.3, for the first of each
validation.  The text is the model's and may imitate any line, so what is read in it is not believed.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Line, Said, Take

NAME: Final = "decoded_sample"
NEEDLES: Final = (b"[prompt]", b"[response]")

_BEGINS = ("[prompt]", "[response]")
_ANSWER = "[ground_truth]"
_SCORE = re.compile(r"\[score\] [-+]?(?:nan|inf|True|False|None|[0-9.e+-]{1,40}|np\.\w{1,20}\([^()]{1,40}\))$")


def parse(line: Line) -> Sample | None:
    """Its rows up to the score; nothing is told of it."""
    return Sample() if line.text.startswith(_BEGINS) else None


class Sample:
    """Everything that its writer prints before the score."""

    LINES = 3000
    BYTES = 1 << 18

    def __init__(self) -> None:
        self._answered = False

    def take(self, line: Line, _said: Said | None) -> Take:
        """The score is the end, if it follows what was right: models write scores too."""
        if self._answered and _SCORE.match(line.text.rstrip()):
            return Take.DONE
        self._answered |= line.text.startswith(_ANSWER)
        return Take.DOUBTED

    def close(self) -> None:
        """Model output is no record."""
