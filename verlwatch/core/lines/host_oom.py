"""A node has no memory left, and Ray kills workers for it: who was killed, and who has taken the memory.

Source: Ray ``src/ray/raylet/node_manager.cc`` and ``worker_killing_policy*.cc``.  Every minute raylet counts:

    2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node
        (ID: ..., IP: 10.0.0.1) over the last time period.

and for each kill there is a report, as an exception of the driver or as an error of raylet:

    Memory on the node (IP: 10.0.0.1, ID: ...) where the task (task ID: ..., name=f, pid=4711, memory used=10.13GB) was
        running was 891.02GB / 937.50GB (0.950421), which exceeds the memory usage threshold of 0.95. Ray killed this
        worker (ID: ...) because it was the most recently scheduled task; ... Top 10 memory users:
    PID     MEM(GB) COMMAND
    4690    56.57   ray::WorkerDict.actor_rollout_generate_sequences

Ray 2.5x writes ``lease`` for ``task``.  Since 2.55 victims have lines of their own (``Selected to kill: (Task: job
ID=..., task name=f, ..., pid=4711, actual memory used=10.13GB, worker ID=...)``), later ones write ``891.02GB used /
937.50GB limit``, and some log views put the report on one line.  The victim is whom Ray's policy picks, the most recent
and not the largest; GB are GiB.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, Numbers, Said, Take, fault
from verlwatch.core.lines._names import place_of

NAME: Final = "host_oom"
NEEDLES: Final = (b" killed ", b"Memory on the node (")

_TOP = 10
_COUNT = re.compile(
    r"([0-9]{1,9}) Workers \(tasks / actors\) killed due to memory pressure \(OOM\), ([0-9]{1,9}) Workers crashed "
    r"due to other reasons at node \(ID: \w{1,80}, IP: ([\w.:]{1,64})\)"
)
_BEGIN = re.compile(
    r"(?:Task [^ ]{1,200} failed due to oom\. [^:]{0,200}: )?(?:(?:[\w.]{1,80}\.)?OutOfMemoryError: )?"
    r"(?:(?:Task was|[0-9]{1,9} worker\(s\) were) killed due to the node running low on memory\.|"
    r"Memory on the node \(IP)"
)
_MEMORY = re.compile(
    r"Memory on the node \(IP: ([\w.:]{1,64}), ID: \w{1,80}\) (?:where the (?:task|lease) \(.{1,400}?\) was running )?"
    r"was ([0-9]{1,9}\.[0-9]{1,6})GB (?:used )?/ ([0-9]{1,9}\.[0-9]{1,6})GB (?:limit )?\(([0-9]\.[0-9]{1,9})\)"
)
_THRESHOLD = re.compile(r", which exceeds the memory usage threshold of ([0-9]\.[0-9]{1,9})[.;]")
_KILLED = re.compile(r"Ray killed ([0-9]{1,9}) worker\(s\)|([0-9]{1,9}) worker\(s\) were killed")
_VICTIM = re.compile(
    r"(?:, |task )name=([^,=]{1,200}), (?:required resources=\{[^{}]{0,200}\}, )?pid=([0-9]{1,10}), "
    r"(?:actual )?memory used=([0-9]{1,9}\.[0-9]{1,6})GB"
)
_TABLE = re.compile(r"PID\s{1,12}MEM\(GB\)\s{1,8}COMMAND")
_ROW = re.compile(r"\s{0,8}([0-9]{1,10})\s{1,12}([0-9]{1,9}\.[0-9]{1,4})(?:\s{1,8}([^,\t].*)?)?$")
_CELL = re.compile(r", ([0-9]{1,10})\s{1,12}([0-9]{1,9}\.[0-9]{1,4})\s{1,8}([^,\s][^,]{0,300})?(?=,)")


class Report:
    """The report of one kill, which goes on over many lines."""

    LINES = 400
    BYTES = 1 << 16

    def __init__(self, text: str) -> None:
        self._told: dict[str, str | float | None] = {}
        self._in_table = False
        self._rows = 0
        self._read(text, cut=False)

    def take(self, line: Line, said: Said | None, /) -> Take:
        """Rows of the table of the largest, and whatever names memory, threshold and victims before it."""
        text = bare(line).text
        is_block = said is not None and not isinstance(said, Numbers | Fact)
        if is_block and "used_gb" in self._told:
            return Take.ENDED
        if text.startswith("Refer to the documentation on how to address the out of memory issue"):
            return Take.ENDED
        if not self._read(text, cut=line.cut is True):
            return Take.ENDED if is_block or (self._rows and text.strip()) else Take.IGNORED
        return Take.DONE if self._rows == _TOP else Take.TAKEN

    def close(self) -> Fact:
        """``ip``, memory of the node, ``victim_*`` of the first that was killed and ``largest_*`` of the table."""
        return fault(NAME, self._told)

    def _read(self, text: str, *, cut: bool) -> bool:
        """Whether it is a part.  What was told first counts."""
        if self._in_table and (row := _ROW.match(text)):
            if not cut:
                self._consumer(*row.groups())
            return True
        found: dict[str, str | float | None] = {}
        if memory := _MEMORY.search(text):
            ip, used, total, fraction = memory.groups()
            found |= {"ip": ip, "used_gb": float(used), "total_gb": float(total), "fraction": float(fraction)}
        if threshold := _THRESHOLD.search(text):
            found["threshold"] = float(threshold[1])
        if killed := _KILLED.search(text):
            found["killed"] = int(killed[1] or killed[2])
        if ("Selected to kill: " in text or "illed " in text or memory) and (victim := _VICTIM.search(text)):
            found |= _victim(*victim.groups())
        self._told = {**found, **self._told}
        if table := _TABLE.search(text):
            self._in_table = True
            for cell in _CELL.finditer(text, table.end()):
                self._consumer(*cell.groups())
        return bool(found or table)

    def _consumer(self, pid: str, memory: str, command: str | None) -> None:
        self._rows += 1
        if float(memory) > float(self._told.get("largest_gb") or 0):
            self._told |= {"largest_pid": int(pid), "largest_gb": float(memory), "largest_command": command}


def parse(line: Line) -> Fact | Report | None:
    """A report, or the count: ``killed``, ``crashed`` for other reasons, and ``ip``."""
    if line.shows_samples:
        return None
    text = bare(line).text
    if count := _COUNT.match(text):
        killed, crashed, ip = count.groups()
        return fault(NAME, {"killed": int(killed), "crashed": int(crashed), "ip": ip}) if int(killed) else None
    return Report(text) if _BEGIN.match(text) else None


def _victim(name: str, pid: str, memory: str) -> dict[str, str | float | None]:
    """``actor_name:Class.method`` or a plain task; the class is what people look for."""
    actor, _, task = name.rpartition(":")
    node, local_rank = place_of(actor)
    return {
        "victim": task.partition(".")[0] if actor else name,
        "victim_name": name,
        "victim_pid": int(pid),
        "victim_gb": float(memory),
        "victim_node": node,
        "victim_local_rank": local_rank,
    }
