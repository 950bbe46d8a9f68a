"""A job of Slurm, as ``scontrol show job`` tells it.

Source: Slurm ``src/api/job_info.c`` (slurm_sprint_job_info, _fname_format), ``src/common/parse_time.c``, sbatch(1)
"filename pattern", scontrol(1); output of Slurm 22.05.  Records are separated by an empty line, most lines hold
``KEY=VALUE`` pairs, and what may hold blanks (a name, a path) stands last in its line.  A job is known for `MinJobAge`
(300 s by default) after its end.
"""

from __future__ import annotations

import os
import re
import shutil
from datetime import datetime
from itertools import chain, product
from typing import NamedTuple

from verlwatch.shell import _program
from verlwatch.shell._program import UnansweredError
from verlwatch.shell.printable import shortened

TIMEOUT_S = 10.0
ENDED = frozenset({
    *("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED", "PREEMPTED", "BOOT_FAIL"),
    *("DEADLINE", "REVOKED"),
})  # fmt: skip
"""States that a job does not leave by itself."""
MOST_NODES = 10_000
_JOB_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10}|\+[0-9]{1,10})?")
_PAIR = re.compile(r"(\S+?)=(\S*)")
_WHOLE = re.compile(r".*?\b(JobName|Command|WorkDir|StdErr|StdIn|StdOut|Comment|AdminComment)=(.*)", re.DOTALL)
_NOTHING = frozenset({"", "(null)", "N/A", "None", "Unknown", "NONE"})
_LIMIT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)")
_PATTERN = re.compile(r"%(%|[0-9]{0,2}[AabJjNnstux])")
_NO_TASK = "4294967294"  # what Slurm prints for the number of a task of an array that has not begun
_PART = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")
_ASK = "give the right one (`squeue --me` shows those that run)"


class SlurmError(Exception):
    """Slurm does not tell of a job; the text says why and what to do.  ``unknown``: it knows no such job."""

    def __init__(self, text: str, *, unknown: bool = False) -> None:
        super().__init__(text)
        self.unknown = unknown


class Job(NamedTuple):
    """A job.  Times are epoch seconds, None where Slurm does not say; ``ends_at`` is when it ended or must end.

    ``state`` is Slurm's word, ``nodes`` its short form (``node[1-3]``), ``logs`` are where its output goes.
    """

    job: str
    name: str
    state: str
    reason: str = ""
    exit_code: int = 0
    signal: int = 0
    time_limit_s: float | None = None
    started_at: float | None = None
    ends_at: float | None = None
    nodes: str = ""
    batch_host: str = ""
    restarts: int = 0
    logs: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, for this time (it may be queued again)."""
        return self.state in ENDED


def is_job_id(text: str) -> bool:
    """Whether ``text`` can name a job: ``4711``, ``4711_3`` of an array, ``4711+1`` of a heterogeneous one."""
    return _JOB_ID.fullmatch(text) is not None


def ask(job: str, timeout_s: float = TIMEOUT_S) -> Job:
    """How a job stands.

    Raises:
        SlurmError: Slurm is not there, does not answer in time, or does not know it; or ``job`` is several.
    """
    program = shutil.which("scontrol")
    if program is None:
        raise SlurmError("scontrol is not found: this host has no Slurm, or its programs are not in $PATH")
    try:
        done = _program.run((program, "show", "job", job), timeout_s, {"SLURM_TIME_FORMAT": "%s"})
    except UnansweredError as error:
        if not error.is_late:
            raise SlurmError(f"scontrol {error}: that is no job") from None
        raise SlurmError(f"scontrol does not answer within {timeout_s:g} s; is the controller of Slurm up?") from None
    except OSError as error:
        raise SlurmError(f"{program}: {(error.strerror or 'cannot be run').lower()}") from None
    said = done.out.decode("utf-8", "replace")
    if done.code:
        raise _refused(job, f"{said}\n{done.err.decode('utf-8', 'replace')}".strip())
    try:
        return only(read(said), job)
    except (ValueError, KeyError, OverflowError):  # digits of another script, a year that is none, half a record
        raise SlurmError(f"scontrol says of job {job} what cannot be read; name its log with --log") from None


def read(text: str) -> list[dict[str, str]]:
    """The records in what `scontrol show job` prints, by Slurm's keys."""
    records = []
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            if (whole := _WHOLE.match(line)) is not None:
                fields.setdefault(whole[1], whole[2])
                line = line[: whole.start(1)]  # noqa: PLW2901 - what stands before it
            for key, value in _PAIR.findall(line):
                fields.setdefault(key, value)
        if "JobId" in fields:
            records.append(fields)
    return records


def only(records: list[dict[str, str]], asked: str) -> Job:
    """The job that was asked for.  Raises SlurmError."""
    if not records:
        raise SlurmError(f"scontrol says nothing of job {asked} that can be read; name its log with --log")
    if len(records) > 1 or _is_several(records[0]):
        ids = [_name_of(fields) for fields in records if not _is_several(fields)]
        among = f": {', '.join(ids[:5])}{' …' if len(ids) > 5 else ''}" if ids else f", such as {asked}_1"  # noqa: PLR2004
        raise SlurmError(f"job {asked} is several jobs; name one of them{among}")
    return job_of(records[0])


def job_of(fields: dict[str, str]) -> Job:
    """A record as a Job."""
    states = fields.get("JobState", "").split(",")
    code, _, signal = fields.get("ExitCode", "").partition(":")
    logs = (_log(fields, key) for key in ("StdOut", "StdErr"))
    begun = fields.get("JobState") != "PENDING"  # before that, times are estimates
    return Job(
        job=_name_of(fields),
        name=fields.get("JobName", ""),
        state=next((state for state in states if state in ENDED), states[0]),
        reason=_value(fields, "Reason"),
        exit_code=int(code) if code.isdigit() else 0,
        signal=int(signal) if signal.isdigit() else 0,
        time_limit_s=_limit_s(_value(fields, "TimeLimit")),
        started_at=_time(_value(fields, "StartTime")) if begun else None,
        ends_at=_time(_value(fields, "EndTime")) if begun else None,
        nodes=_value(fields, "NodeList"),
        batch_host=_value(fields, "BatchHost"),
        restarts=int(fields["Restarts"]) if fields.get("Restarts", "").isdigit() else 0,
        logs=tuple(dict.fromkeys(log for log in logs if log)),
    )


def expand(nodes: str, most: int = MOST_NODES) -> tuple[str, ...]:
    """The hosts of a list: ``node[001-003,7],gpu-a`` → node001, node002, node003, node7, gpu-a; ``most`` of them.

    A part that is not of that form stands as it is.
    """
    found: list[str] = []
    for item in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", nodes):
        parts = [
            [plain] if plain else [head + n for n in _numbers(inside, most)]
            for head, inside, plain in _PART.findall(item)
        ]
        for words in product(*parts):
            if len(found) >= most:
                return tuple(found)
            found.append("".join(words))
    return tuple(found)


def _numbers(inside: str, most: int) -> list[str]:
    """``001-003,7`` → 001, 002, 003, 7."""
    ranges = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            ranges.append([part])
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        ranges.append([f"{number:0{len(match[1])}d}" for number in range(first, min(last, first + most) + 1)])
    return list(chain.from_iterable(ranges))


def _refused(job: str, said: str) -> SlurmError:
    if "Invalid job id" in said or "not found" in said:
        return SlurmError(
            f"Slurm knows no job {job}: {_ASK}; if it ended some minutes ago, name its log (verlwatch run --log)",
            unknown=True,
        )
    return SlurmError(f"scontrol: {shortened(said.splitlines()[-1]) if said else 'failed without a word'}")


def _is_several(fields: dict[str, str]) -> bool:
    """Whether a record stands for the tasks of an array that have not begun."""
    return not fields.get("ArrayTaskId", "0").isdigit()


def _name_of(fields: dict[str, str]) -> str:
    if task := fields.get("ArrayTaskId"):
        return f"{fields['ArrayJobId']}_{task}"
    if "HetJobId" in fields:
        return f"{fields['HetJobId']}+{fields['HetJobOffset']}"
    return fields["JobId"]


def _value(fields: dict[str, str], key: str) -> str:
    value = fields.get(key, "")
    return "" if value in _NOTHING else value


def _time(text: str) -> float | None:
    """Epoch seconds, as asked for, or the local time that Slurm prints by itself."""
    if text.isdigit():
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _limit_s(text: str) -> float | None:
    """Seconds of ``1-00:00:00`` or ``00:30:00``; None without a limit."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((24 * days + hours) * 60 + minutes) * 60 + seconds)


def _log(fields: dict[str, str], key: str) -> str:
    """Where output goes, as a path; empty where there is no file."""
    pattern = _value(fields, key).replace(_NO_TASK, fields.get("ArrayTaskId", ""))
    if not pattern or pattern == "/dev/null":
        return ""
    user = fields.get("UserId", "").split("(")[0]
    job, task = fields["JobId"], fields.get("ArrayTaskId", "")
    stands_for = {"%": "%", "A": fields.get("ArrayJobId", job), "a": task or _NO_TASK, "j": job, "J": job, "u": user}
    stands_for |= {"b": str(int(task) % 10) if task.isdigit() else "0", "x": fields.get("JobName", "")}
    stands_for |= {"N": fields.get("BatchHost", "").split(".")[0], "n": "0", "s": "batch", "t": "0"}

    def expanded(match: re.Match[str]) -> str:
        width, letter = match[1][:-1], match[1][-1]
        value = stands_for[letter]
        return value.zfill(min(int(width), 10)) if width and value.isdigit() else value

    return os.path.join(fields.get("WorkDir", "/"), _PATTERN.sub(expanded, pattern))  # noqa: PTH118 - a text, not yet a path
