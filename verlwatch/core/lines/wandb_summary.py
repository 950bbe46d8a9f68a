"""The last value of every metric, as wandb prints it when a run ends: it is no step.

    wandb: Run summary:
    wandb:                     timing_s/gen 72.74288
    wandb: timing_per_token_ms/update_actor 0.061
    wandb:                               +9 ...

Source: wandb ``sdk/wandb_run.py`` (``_footer_history_summary_info``).  The history before it has the same keys with
sparklines instead of numbers.  An excerpt may miss the heading: a key with a slash and a number begins the block too.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Attributes, Fact, Line, Take
from verlwatch.core.lines._quantity import NUMBER, number

NAME: Final = "wandb_summary"
NEEDLES: Final = (b"wandb: ",)

_HEADING = "wandb: Run summary:"
_ROW = re.compile(rf"wandb: {{1,200}}(\S[^\n]{{0,200}}?) (-?{NUMBER})$")
_OTHER_ROW = re.compile(
    r"wandb: {1,200}(?:\S{1,200} [\u2581-\u2588 ]{1,200}|\+[0-9]{1,6} \.\.\.|[^\s/]{1,100}/\S{1,200} .{1,200})$"
)
_VALUES_MAX = 200


class _Summary:
    """The rows under the heading; those of other keys than numbers are passed over."""

    LINES = 1000
    BYTES = 1 << 18

    def __init__(self) -> None:
        self._values: Attributes = {}

    def take(self, line: Line, said: object, /) -> Take:
        """A row of wandb's table; anything else that wandb prints ends it."""
        del said  # what a row says by itself is this block's
        text = line.text.rstrip()
        if not text.startswith("wandb:"):
            return Take.IGNORED
        if line.cut or not (row := _ROW.match(text)):
            return Take.TAKEN if _OTHER_ROW.match(text) else Take.ENDED
        if len(self._values) < _VALUES_MAX:
            self._values.setdefault(row[1], number(row[2]))
        return Take.TAKEN

    def close(self) -> Fact | None:
        """The values under wandb's own names."""
        return Fact(NAME, self._values) if self._values else None


def parse(line: Line) -> _Summary | None:
    """The block that begins with the heading, or with a row whose key has a slash."""
    text = line.text.rstrip()
    if line.cut or line.from_rollout or not text.startswith("wandb: "):
        return None
    summary = _Summary()
    if text != _HEADING:
        row = _ROW.match(text)
        if row is None or "/" not in row[1]:
            return None
        summary.take(line, None)
    return summary
