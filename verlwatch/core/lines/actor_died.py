r"""An actor is dead or cannot be reached: ``ActorDiedError: The actor died unexpectedly before finishing this task.``.

    ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
    \tclass_name: create_colocated_worker_cls.<locals>.WorkerDict
    \tactor_id: ...
    \tpid: 4711
    \tname: Y1y0SuWorkerDict_0:3
    \tnamespace: ...
    \tip: 10.0.0.1
    The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: ...

Source: Ray ``python/ray/exceptions.py`` (RayActorError before 2.9).  The causes that Ray lists are guesses.  An actor
that died in its constructor is an `exception`.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import LABEL, bare
from verlwatch.core.lines._line import Fact, Line, Said, Take, fault
from verlwatch.core.lines._names import place_of

NAME: Final = "actor_died"
NEEDLES: Final = (b" died unexpectedly", b"ActorUnavailableError")

_DIED = re.compile(
    rf"{LABEL}(?:(?:[\w.]{{1,60}}\.)?(?:ActorDiedError|RayActorError):? )?"
    r"The actor died unexpectedly before finishing this task\."
)
_UNAVAILABLE = re.compile(
    r"(?:[\w.]{1,60}\.)?ActorUnavailableError: The actor (?:([0-9a-f]{8,64}) )?is unavailable: (.*)"
)
_ROW = re.compile(r"\s{1,8}(class_name|actor_id|pid|name|namespace|ip): (\S{1,300})$")
_EXIT = re.compile(r"(?:W|Owner w)orker exit type: (\w{1,60}) Worker exit detail: (.*)")
_INTENDED = "INTENDED"


class Death:
    """The rows that Ray writes of a dead actor."""

    LINES = 1000
    BYTES = 1 << 17

    def __init__(self) -> None:
        self._rows: dict[str, str] = {}
        self._reason = ""

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Indented rows, then why it is dead."""
        if ": " not in line.text and "The actor" not in line.text:
            return Take.ENDED if self._rows or said is not None else Take.IGNORED  # most of what comes between
        text = bare(line).text
        if row := _ROW.match(text):
            if not line.cut:
                self._rows[row[1]] = row[2]
            return Take.TAKEN
        if text.startswith(("The actor is dead because ", "The actor died because ")):
            self._reason = text
            return Take.DONE
        return Take.ENDED if self._rows or said is not None else Take.IGNORED

    def close(self) -> Fact | None:
        """What the rows and the reason tell; ``node`` and ``local_rank`` are in the name, ``actor_class`` is bare."""
        rows = self._rows
        node, local_rank = place_of(rows.get("name", ""))
        exited = _EXIT.search(self._reason)
        exit_type = exited[1] if exited else ""
        return fault(
            NAME,
            {
                "actor_class": rows.get("class_name", "").rpartition(".")[2],
                "actor_id": rows.get("actor_id"),
                "name": rows.get("name"),
                "node": node,
                "local_rank": local_rank,
                "pid": int(rows["pid"]) if rows.get("pid", "").isdecimal() else None,
                "ip": rows.get("ip"),
                "exit_type": exit_type,
                "text": exited[2] if exited else self._reason,
            },
            "warning" if exit_type.startswith(_INTENDED) else "critical",
        )


def parse(line: Line) -> Fact | Death | None:
    """A death that begins; or an actor that cannot be reached now, which is a warning."""
    if line.shows_samples:
        return None
    text = bare(line).text
    if _DIED.match(text):
        return Death()
    if away := _UNAVAILABLE.match(text):
        return fault(NAME, {"actor_id": away[1], "text": away[2], "unavailable": 1}, "warning")
    return None
