"""What a source has said once and means for all that follows: who writes it, and whether the training has ended.

A worker file of Ray has no prefixes: its first lines name the actor, its own name ends in the process id.  After the
end of training the processes of a run die noisily: what is a fault before is none then.
"""

from __future__ import annotations

import re
from dataclasses import replace

from verlwatch.core.types import NOBODY, Event, Record, Writer

_WORKER_FILE = re.compile(r"(?:^|/)worker-[0-9a-f]{56}-[0-9a-f]{8}-([0-9]{1,10})\.(?:out|err)")
_ENDED = "ended"
_BEGINS = frozenset({"resume", "plan"})


class Context:
    """Of one generation of one source.  ``str`` of it, kept in the cursor, makes the same one again."""

    def __init__(self, source: str, text: str = "") -> None:
        file = _WORKER_FILE.search(source)
        self._pid = int(file[1]) if file else 0
        ended, _, actor = text.partition(" ")
        self._ended = ended == _ENDED
        self.writer = Writer(actor, self._pid) if self._pid else NOBODY
        """Who writes the lines that have no prefix."""

    def __str__(self) -> str:
        return f"{_ENDED if self._ended else ''} {self.writer.name}".rstrip()

    def heed(self, record: Record) -> Record:
        """Takes in what a record says of the source; gives it back as it is meant here."""
        if not isinstance(record, Event):
            return record
        said = record.attributes
        if record.name == "fault" and self._ended:
            return replace(record, name="shutdown_noise", severity="info")
        if record.name == "actor" and self._pid:
            self.writer = Writer(str(said["name"]), self._pid)
        elif record.name == "finished":
            self._ended = True
        elif record.name == "progress":
            self._ended = said["done"] == said["total"] != 0
        elif record.name in _BEGINS:
            self._ended = False
        return record
