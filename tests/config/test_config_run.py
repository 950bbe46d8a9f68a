"""What bounds a run from outside is read and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.config.conftest import Complains, Loads


def test_a_run_may_have_a_process_a_job_and_a_limit(loads: Loads) -> None:
    (run,) = loads("runs: [{logs: [a.log], pid: 4711, slurm_job: 4711_3, wall_limit: 24h}]").runs
    assert (run.pid, run.slurm_job, run.wall_limit) == (4711, "4711_3", 86_400.0)


def test_what_cannot_bound_a_run_is_told(complains: Complains) -> None:
    assert complains("runs: [{logs: [a.log], pid: 0, slurm_job: train, wall_limit: 5s}]") == [
        "1:29: runs[0].pid: must be at least 1",
        "1:43: runs[0].slurm_job: must be the id of a Slurm job; write for example 4711, or 4711_3 for a task of an "
        "array",
        "1:62: runs[0].wall_limit: must lie between 1m and 3650d",
    ]
    assert complains('runs: [{name: "{folder}", logs: ["*/a.log"], pid: 1}]') == [
        "1:51: runs[0].pid: belongs to one run, and the name stands for several; give that run an entry of its own",
    ]
