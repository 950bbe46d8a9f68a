"""The shell that runs the launch script says which signal ended a program.

    train.sh: line 12:  4711 Killed                  python3 -m verl.trainer.main_ppo trainer.nnodes=2 ...
    /var/spool/slurmd/job99/slurm_script: line 40: 4711 Segmentation fault      (core dumped) python3 -m ...
    [1]+  Killed                  python3 -m verl.trainer.main_ppo
    Bus error (core dumped)

Source: bash ``jobs.c`` (a script's name and line, process and command; a job's number; or the words alone), dash.  It
is believed where no process of the run is named as the writer.  SIGKILL is what the kernel sends when memory has run
out, and what people send; a bus error in a container mostly means that ``/dev/shm`` is full.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "killed"
NEEDLES: Final = (b": line ", b"Killed", b"core dumped)")

_SIGNALS = {
    "Killed": "SIGKILL",
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
    "Terminated": "SIGTERM",
}
_LINE = re.compile(
    r"(?:(?P<script>[\w./~+@-]{1,300}: line [0-9]{1,9}: {1,8}(?P<pid>[0-9]{1,10}) )|"
    r"(?P<job>\[[0-9]{1,4}\][+-]? {1,4}))?"
    rf"(?P<words>{'|'.join(_SIGNALS)})"
    r"(?: {1,30}\(core dumped\)|(?: {1,30}\(core dumped\) | {2,60})(?P<command>\S.*))?$"  # bash writes in columns
)


def parse(line: Line) -> Fact | None:
    """``signal``, and the ``pid`` and ``program`` that the shell names; its arguments, often secret, are left out.

    Critical where a script waited for the program; words alone may be anybody's, and who terminates a run means it.
    """
    found = _LINE.match(line.text.rstrip()) if not line.writer.pid and not line.cut else None
    if found is None or (found["command"] and not found["script"] and not found["job"]):
        return None
    program = next((word for word in (found["command"] or "").split() if "=" not in word), None)
    signal = _SIGNALS[found["words"]]
    is_sure = found["script"] and signal != "SIGTERM"
    said = {"signal": signal, "pid": int(found["pid"]) if found["pid"] else None, "program": program}
    return fault(NAME, said, "critical" if is_sure else "warning", line.text[: found.end("words")])
