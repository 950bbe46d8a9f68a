"""What is to be said of single steps, in the table's last column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from verlwatch.core.statement import Seconds
from verlwatch.report._model import Incident
from verlwatch.report._series import between, present
from verlwatch.report._steps import Remark, Steps
from verlwatch.report._words import Words


def remarks(steps: Steps, incidents: Sequence[Incident], words: Words) -> Steps:
    """The steps, with what is open at each of them, and what it did besides training."""
    found: dict[int, list[str]] = {}
    for incident in incidents:
        for row in between(steps, incident.attempt, incident.onset, incident.last):
            is_timed = incident.before is not None or incident.attribution is not None
            found.setdefault(row, []).append(f"{incident.phase} ×{incident.ratio:.2f}" if is_timed else incident.rule)
    for name, word in (("testing", "validation {seconds}"), ("save_checkpoint", "checkpoint {seconds}")):
        for row, seconds in enumerate(present(steps, name)):
            if not isnan(seconds):
                found.setdefault(row, []).append(words(word, seconds=Seconds(seconds)))
    return replace(steps, remarks=tuple(Remark(row, ", ".join(texts)) for row, texts in sorted(found.items())))
