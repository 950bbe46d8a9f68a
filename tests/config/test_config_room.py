"""What a run may fill is read and checked, and reaches the runs of its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verlwatch.config import settings
from verlwatch.shell.run_names import run_of, run_pattern

if TYPE_CHECKING:
    from tests.config.conftest import Complains, Loads


def test_memory_of_a_host_and_the_directory_of_checkpoints_are_read(loads: Loads) -> None:
    (run,) = loads("runs: [{logs: [a.log], host_memory: 1800GB, checkpoint_dir: /ckpt/run}]").runs
    assert (run.host_memory, run.checkpoint_dir) == (1_800_000_000_000, "/ckpt/run")


def test_what_cannot_be_the_memory_of_a_host_is_told(complains: Complains) -> None:
    assert complains("runs: [{logs: [a.log], host_memory: 1800}]") == [
        "1:37: runs[0].host_memory: has no unit; write for example 64KiB, 1MiB or 2GB (units: B, KB, KiB, MB, MiB, GB, "
        "GiB, TB, TiB)"
    ]
    assert complains("runs: [{logs: [a.log], host_memory: 64MiB}]") == [
        "1:37: runs[0].host_memory: must lie between 1GiB and 1024TiB"
    ]


def test_each_run_of_an_entry_has_its_limits(loads: Loads) -> None:
    config = loads(
        'runs: [{name: "{folder}/{file}", logs: ["/logs/*/*.jsonl"], host_memory: 1024GiB}, '
        '{name: "odd [1]", logs: [b.log], wall_limit: 24h}, {name: free, logs: [c.log]}]'
    )
    core = settings(config)
    assert core.of("project/run-7").host_memory_gb == 1024.0
    assert (core.of("odd [1]").wall_limit_s, core.of("odd [1]").host_memory_gb) == (86_400.0, None)
    assert (core.of("odd 1").wall_limit_s, core.of("free").host_memory_gb) == (None, None)


def test_the_pattern_of_an_entry_fits_what_it_names() -> None:
    assert run_pattern("{folder}-[{file}]") == "*-[[]*]"
    assert run_pattern(run_of("plain", "/logs/a.log")) == "plain"
