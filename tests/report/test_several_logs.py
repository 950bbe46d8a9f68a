"""Several logs of one run: what grew side by side is read side by side, what followed one another in its order."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.report import made
from verlwatch import report
from verlwatch.replay import lanes

SLOW = dict.fromkeys(range(60, 64), 4.0)


def lines(first: int, last: int) -> list[str]:
    return list(made.steps(last, slow=SLOW))[first - 1 :]


def memory(rank: int, step: int) -> str:
    """A worker's line: rank 3 climbs by 2 GB a step from step 90 on."""
    held = 30.0 + (2.0 * min(10, max(0, step - 89)) if rank == 3 else 0.0)
    return (
        f"DEBUG:2025-04-01 09:{step // 60:02}:{step % 60:02},000:Before update_actor, "
        f"memory allocated (GB): {held:.2f}, memory reserved (GB): {held + 8:.2f}, "
        f"device memory used/total (GB): {held + 10:.2f}/79.11"
    )


@pytest.mark.parametrize("first_of_second", [61, 71], ids=["taken up again from a checkpoint", "rotated"])
def test_logs_that_follow_one_another_are_read_in_their_order(tmp_path: Path, first_of_second: int) -> None:
    one = made.written(tmp_path / "one.log", *lines(1, 70))
    two = made.written(tmp_path / "two.log", *lines(first_of_second, 120))
    assert lanes([two, one]) == [[one, two]]
    found = report.build(made.read(two, one), made.WORDS)
    assert found.run.last == 120
    assert [(i.phase, i.onset) for i in found.incidents if i.attribution] == [("gen", 60)]


def test_logs_of_the_same_steps_are_read_side_by_side(tmp_path: Path) -> None:
    driver = made.written(tmp_path / "driver.log", *lines(1, 80))
    again = made.written(tmp_path / "again.log", *lines(1, 80))
    worker = made.written(tmp_path / "worker.log", "nothing about steps")
    assert lanes([worker, driver, again]) == [[driver], [again], [worker]]


def test_a_packed_log_has_its_place_too(tmp_path: Path) -> None:
    later = made.written(tmp_path / "run.log", *lines(51, 80))
    earlier = tmp_path / "run.log.1.gz"
    earlier.write_bytes(gzip.compress("".join(line + "\n" for line in lines(1, 50)).encode()))
    assert lanes([later, earlier]) == [[earlier, later]]


def test_memory_of_small_files_is_laid_beside_the_steps_of_a_large_one(tmp_path: Path) -> None:
    pad = {f"actor/metric_{i}": float(i) for i in range(200)}
    trainer = made.written(tmp_path / "trainer.log", *made.steps(200, also=pad))
    ranks = [
        made.written(
            tmp_path / f"worker-{rank:056x}-01000000-{9000 + rank}.err",
            ":job_id:01000000",
            ":actor_name:WorkerDict",
            f"INFO:2025-04-01 09:00:00,000:[Rank {rank}] Saved model to "
            f"checkpoints/x/global_step_0/actor/model_world_size_4_rank_{rank}.pt",
            *(memory(rank, step) for step in range(1, 201)),
        )
        for rank in range(4)
    ]
    found = report.build(made.read(*ranks, trainer), made.WORDS)
    told = [(i.onset, i.told) for i in found.incidents if i.rule == "memory_offset_change"]
    assert len(told) == 1
    assert told[0][0] == pytest.approx(90, abs=4)
    assert told[0][1] == pytest.approx(92, abs=6)
