"""Whatever moment a process is killed at, its database holds a prefix of its commits."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from verlwatch.shell.store import Store

KILLS = 20
COMMITTER = Path(__file__).with_name("committer.py")


def killed_after(delay_s: float, state_dir: Path) -> int:
    """Lets a process commit, kills it ``delay_s`` after its first word; the last commit it has confirmed."""
    with subprocess.Popen([sys.executable, COMMITTER, state_dir], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(delay_s)
        process.kill()
        confirmed = [first, *process.stdout.readlines()]
    return max(int(line) for line in confirmed if line.endswith(b"\n"))


async def highest(state_dir: Path) -> set[int]:
    """The last commit as each table tells it."""
    store = await Store.open(state_dir)
    snapshot = await store.load()
    transitions = await store.transitions(10**6)
    stats = await store.outbox.stats()
    n = snapshot.cursors[0].applied_to
    data = snapshot.states[0].data
    assert store.set_aside is None
    assert data is not None
    assert [row.step for row in snapshot.steps] == list(range(max(1, n - 2047), n + 1))
    assert [step.step for _, step in transitions] == list(range(1, n + 1))
    await store.close()
    return {n, data["n"], len(transitions), stats["slack"].pending}


async def test_after_each_of_twenty_kills_the_database_is_a_prefix_of_the_commits(tmp_path: Path) -> None:
    delays = random.Random(7)
    committed = 0
    for _ in range(KILLS):
        confirmed = killed_after(delays.uniform(0, 0.08), tmp_path)
        told = await highest(tmp_path)
        assert len(told) == 1, told
        assert committed < confirmed <= told.copy().pop() <= confirmed + 1
        (committed,) = told
