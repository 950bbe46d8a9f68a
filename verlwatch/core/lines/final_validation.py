"""Validation before the first step, and after the last: the run has finished.

    ("Initial validation metrics: {'val-core/gsm8k/reward/mean@1': "
     'np.float64(0.25)}')

Source: verl ``RayPPOTrainer.fit``, ``pprint(f"Final validation metrics: {...}")``: a quoted text wrapped at 80 columns;
where it fits or is None it stands unquoted or unwrapped.  Its numbers are also in the step lines.  What a run prints
while it shuts down comes after this line and is noise.
"""

from __future__ import annotations

import math
import re
from typing import Final

from verlwatch.core.lines import _pprint
from verlwatch.core.lines._line import Attributes, Fact, Line, Said, Take

NAME: Final = "final_validation"
NEEDLES: Final = (b"validation ",)

_LINE = re.compile(r"""(\()?["']?(Initial|Final) validation metrics: """)
_METRIC = re.compile(
    r"'([^'\\]{1,200})': (?:np\.\w{1,20}\()?(-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:e[-+]?[0-9]{1,3})?)\)?[,}]"
)
_METRICS = 300


def parse(line: Line) -> Fact | Validation | None:
    """An event ``finished`` for the final validation, ``validated`` for the initial one, with its metrics."""
    found = _LINE.match(line.text) if not line.from_rollout else None
    if found is None:
        return None
    name = "finished" if found[2] == "Final" else "validated"
    first = _pprint.string(line.text[1:].rstrip()) if found[1] else None
    return Fact(name, _metrics(line.text)) if first is None else Validation(name, first)


class Validation:
    """A text in several rows, each a literal of its own, the last with the closing bracket."""

    LINES = 400
    BYTES = 1 << 16

    def __init__(self, name: str, first: str) -> None:
        self._name = name
        self._texts = [first]

    def take(self, line: Line, said: Said | None) -> Take:
        """Rows are indented literals; what the process prints to stderr meanwhile is none."""
        row = line.text.rstrip()
        last = row.endswith(")")
        text = _pprint.string(row.removesuffix(")").lstrip()) if row.startswith(" ") else None
        if text is None:
            return Take.IGNORED if said is None else Take.ENDED
        self._texts.append(text)
        return Take.DONE if last else Take.TAKEN

    def close(self) -> Fact:
        """The event, whether or not the end came."""
        return Fact(self._name, _metrics("".join(self._texts)))


def _metrics(text: str) -> Attributes:
    """Finite numbers whose end is seen."""
    metrics = {key: float(number) for key, number in _METRIC.findall(text)[:_METRICS]}
    return {key: value for key, value in metrics.items() if math.isfinite(value)}
