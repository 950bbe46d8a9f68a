"""What a source has said once and means for all that follows: who writes it, and whether the training has ended.

A worker file of Ray has no prefixes: its first lines name the actor, its own name ends in the process id.  A process
that prints model output stays what it is, whatever it prints.  After the end of training the processes of a run die
noisily: what is a fault before is none then.  Training has ended with its final validation, or when the bar is full and
the last step has been printed, whichever comes first.
"""

from __future__ import annotations

import re
from dataclasses import replace

from verlwatch.core.lines._line import Line
from verlwatch.core.types import NOBODY, Event, Record, Samples, Writer

_WORKER_FILE = re.compile(r"(?:^|/)worker-[0-9a-f]{56}-[0-9a-f]{8}-([0-9]{1,10})\.(?:out|err)")
_TEXT = re.compile(r"([01]) ([0-9]{1,18}) ([0-9]{1,18}) ?(.*)")
_BEGINS = frozenset({"resume", "plan"})


class Context:
    """Of one generation of one source.  ``str`` of it, kept in the cursor, makes the same one again."""

    def __init__(self, source: str, text: str = "") -> None:
        known = _TEXT.fullmatch(text)
        ended, step, full, actor = known.groups() if known else ("0", "0", "0", "")
        file = _WORKER_FILE.search(source)
        self._pid = int(file[1]) if file else 0
        self._ended = ended == "1"
        self._step = int(step)
        self._full = int(full)  # steps of the bar that is full
        self.writer = Writer(actor, self._pid) if self._pid else NOBODY
        """Who writes the lines that have no prefix."""

    def __str__(self) -> str:
        return f"{int(self._ended)} {self._step} {self._full} {self.writer.name}".rstrip()

    def heed(self, record: Record) -> Record:
        """Takes in what a record says of the source; gives it back as it is meant here."""
        if isinstance(record, Samples):
            self._step = record.step
            self._ended = self._ended or 0 < self._full == record.step
        elif record.name == "fault" and self._ended:
            return replace(record, name="shutdown_noise", severity="info")
        else:
            self._hear(record)
        return record

    def _hear(self, event: Event) -> None:
        said = event.attributes
        if event.name == "actor" and self._pid and not Line("", self.writer).from_rollout:
            self.writer = Writer(str(said["name"]), self._pid)
        elif event.name == "finished":
            self._ended = True
        elif event.name == "progress":
            self._full = int(said["total"]) if said["done"] == said["total"] else 0
            self._ended = 0 < self._full == self._step
        elif event.name in _BEGINS:
            self._ended, self._step, self._full = False, 0, 0
