"""Slurm ends a job, or tells how a task of it ended.

    slurmstepd: error: *** JOB 4711 ON gpu-node-3 CANCELLED AT 2026-03-24T06:36:51 DUE TO TIME LIMIT ***
    slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.
    srun: error: gpu-node-3: tasks 0,2-3: Exited with exit code 1

Source: Slurm ``slurmd/slurmstepd/req.c`` (``STEP 4711.0`` for a step; no reason where somebody has cancelled it),
``plugins/task/cgroup/task_cgroup_memory.c`` (``1 oom-kill event(s) in step 4711.batch cgroup`` before 21.08) and
``srun/libsrun/launch.c`` and ``plugins/launch/slurm``.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "slurm"
NEEDLES: Final = (b": error: ",)

_CANCELLED = re.compile(
    r"(?:slurmstepd|srun): error: \*\*\* (?:JOB|STEP) ([0-9]{1,12})(?:[.+]\w{1,20}){0,2} (?:ON (\S{1,253}) )?"
    r"CANCELLED AT \S{1,40} (?:DUE (?:TO|to) ([\w ]{1,60}?) ?(?=,|\*\*\*)|\*\*\*)"
)
_OOM = re.compile(
    r"slurmstepd: error: Detected ([0-9]{1,9}) oom[_-]kill event(?:s|\(s\))?(?: in (?:StepId=|step )([0-9]{1,12}))?\b"
)
_TASK = re.compile(
    r"srun: error: ([\w.-]{1,253}): tasks? ([0-9,-]{1,200}): "
    r"((?:Exited with exit code ([0-9]{1,3})|[A-Z][a-z]{2,20}(?: [A-Za-z]{2,20}){0,2})(?: \(core dumped\))?)$"
)
_SENT_BY_SLURM = "Terminated"


def parse(line: Line) -> Fact | None:
    """``what``: cancelled (``job``, ``host``, ``reason``), oom (``job``, ``events``) or task.

    A task has ``host``, ``tasks``, ``text`` and ``exit_code``; one that Slurm itself has terminated is a consequence.
    """
    if line.writer.pid or line.cut:
        return None
    text = line.text.rstrip()
    if cancelled := _CANCELLED.match(text):
        job, host, reason = cancelled.groups()
        return fault(NAME, {"what": "cancelled", "job": int(job), "host": host, "reason": (reason or "").lower()})
    if oom := _OOM.match(text):
        events, job = oom.groups()
        return fault(NAME, {"what": "oom", "job": int(job) if job else None, "events": int(events)})
    if task := _TASK.match(text):
        host, tasks, how, code = task.groups()
        said = {"what": "task", "host": host, "tasks": tasks, "text": how, "exit_code": int(code) if code else None}
        return fault(NAME, said, "warning" if how.startswith(_SENT_BY_SLURM) else "critical")
    return None
