"""What bounds a run from outside: a process, a job of Slurm, a time, the memory of its hosts, room for checkpoints."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from verlwatch import fields
from verlwatch.fields import Duration, FilePath, Model, Size, within
from verlwatch.shell.slurm import is_job_id

_LARGEST_PID = 1 << 22  # PID_MAX_LIMIT of Linux


def parse_job_id(text: str) -> str:
    """``text`` if it can be the id of a job of Slurm."""
    if not is_job_id(text):
        raise ValueError("must be the id of a Slurm job; write for example 4711, or 4711_3 for a task of an array")
    return text


Pid = Annotated[int, Field(ge=1, le=_LARGEST_PID)] | None
JobId = (
    Annotated[
        str, AfterValidator(parse_job_id), WithJsonSchema({"type": "string", "examples": ["4711", "4711_3", "4711+1"]})
    ]
    | None
)
WallLimit = Annotated[Duration, within(fields.parse_duration, "1m", "3650d")] | None


class Room(Model):
    """What a run may fill: part of an entry of ``runs``."""

    host_memory: Annotated[Size, within(fields.parse_size, "1GiB", "1024TiB")] | None = Field(
        default=None,
        description="Memory of a host that trains (1GiB to 1024TiB), to tell when it will be full. Default: that of "
        "the hosts on which verlwatch or an agent runs.",
    )
    checkpoint_dir: FilePath | None = Field(
        default=None,
        description="Directory of the checkpoints on this host, to tell for how many more there is room. Default: the "
        "one that the log names.",
    )
