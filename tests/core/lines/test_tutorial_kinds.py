"""Forms that people print themselves, and blocks of several lines: units, cuts and what does not belong."""

from __future__ import annotations

import pytest

from verlwatch.core.lines import (
    Fact,
    Line,
    Numbers,
    async_trainer,
    nccl_tests,
    tutorial_dataflow,
    tutorial_layout,
    tutorial_memory,
    tutorial_step,
    tutorial_time,
    wandb_summary,
)
from verlwatch.core.lines._line import Take


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("2487.3ms", 2.4873), ("3210ms", 3.21), ("0.1ms", 0.0001), ("850us", 0.00085), ("2.5s", 2.5), ("1.5 sec", 1.5)],
)
def test_a_unit_moves_the_point_and_keeps_the_digits(printed: str, seconds: float) -> None:
    said = tutorial_step.parse(Line(f"Step 7: total={printed}, gen={printed}"))
    assert said == Numbers(7, {"timing_s/step": seconds, "timing_s/gen": seconds})
    assert tutorial_time.parse(Line(f"[INFO] step: gen: {printed}")) == Fact(
        "phase_time", {"phase": "gen", "seconds": seconds}
    )


def test_a_cut_step_keeps_its_whole_items() -> None:
    text = "Step 498: total=3210ms, gen=2980ms, old_log_prob=120ms"
    whole = tutorial_step.parse(Line(text))
    assert whole is not None
    for end in range(len(text)):
        said = tutorial_step.parse(Line(text[:end], cut=True))
        assert said is None or said.values.items() <= whole.values.items(), text[:end]


def test_a_cut_memory_line_keeps_its_whole_gpus() -> None:
    text = "[INFO] After rollout generation: GPU 0: 48.2GB / 80GB, GPU 1: 12.1GB / 80GB"
    for end in range(len(text) - 1):
        said = tutorial_memory.parse(Line(text[:end], cut=True))
        assert said is None or (said.attributes["used_gb.0"], said.attributes["total_gb.0"]) == (48.2, 80)


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        (
            "DeviceMesh('cuda', [[0, 1], [2, 3], [4, 5]], mesh_dim_names=('dp', 'tp'))",
            {"shape": "3x2", "dims": "dp, tp"},
        ),
        ("DeviceMesh('cuda', [[[0, 1]]], mesh_dim_names=('a', 'b', 'c'))", {"shape": "1x1x2", "dims": "a, b, c"}),
        ("DeviceMesh('cuda', [0, 1], mesh_dim_names=('fsdp',))", {"shape": "2", "dims": "fsdp"}),
        ("DeviceMesh('cuda', [[0], [1]])", {"shape": "2x1"}),
        ("DeviceMesh((dp=3, tp=2), device: 'cuda', stride: (2, 1))", {"shape": "3x2", "dims": "dp, tp"}),
    ],
)
def test_a_mesh_is_as_large_as_its_ranks_say(mesh: str, said: dict[str, str]) -> None:
    told = tutorial_layout.parse(Line(f"device_mesh: {mesh}"))
    assert told == Fact("device_mesh", {"mesh": "device_mesh", "device": "cuda", **said})


@pytest.mark.parametrize(
    "mesh", ["[[0, 1], [2]]", "[]", "[[], []]", "[[0, [1]]]", "[0, 1", "[" * 5000 + "0" + "]" * 5000]
)
def test_ranks_that_make_no_grid_are_no_mesh(mesh: str) -> None:
    assert tutorial_layout.parse(Line(f"device_mesh: DeviceMesh('cuda', {mesh})")) is None
    assert tutorial_layout.parse(Line("device_mesh: DeviceMesh((dp=3tp=2), device: 'cuda')")) is None


def test_a_data_flow_that_is_no_object_says_nothing() -> None:
    for text in ('["rollout_throughput"]', '{"rollout_throughput": 3}', '{"rollout_throughput": "3 samples/s"'):
        assert tutorial_dataflow.parse(Line(text)) is None


def test_wandb_keeps_the_first_two_hundred_values_and_ends_at_other_words() -> None:
    summary = wandb_summary.parse(Line("wandb: Run summary:"))
    assert summary is not None
    assert summary.close() is None
    for i in range(300):
        assert summary.take(Line(f"wandb:    actor/key_{i} {i}.5"), None) is Take.TAKEN
    assert summary.take(Line("printed by somebody"), None) is Take.IGNORED
    assert summary.take(Line("wandb:    actor/name a text"), None) is Take.TAKEN
    assert summary.take(Line("wandb: Synced 5 files"), None) is Take.ENDED
    said = summary.close()
    assert said is not None
    assert len(said.attributes) == 200
    assert said.attributes["actor/key_199"] == 199.5


@pytest.mark.parametrize(
    "text", ["wandb: epoch 3", "wandb: Run history:", "wandb:  timing_s/gen ▅▄▃", "wandb:  timing_s/gen nan", "wandb: "]
)
def test_only_a_heading_or_a_number_of_a_group_begins_a_summary(text: str) -> None:
    assert wandb_summary.parse(Line(text)) is None


def test_a_table_of_many_sizes_keeps_forty_and_its_average_stands_alone() -> None:
    table = nccl_tests.parse(Line("#       size         count      type   redop    root     time   algbw   busbw"))
    assert table is not None
    assert not isinstance(table, Fact)
    for i in range(60):
        row = Line(f"  {1000 + i}  250  float  sum  -1  10.5  2.5  3.5  0  11.5  2.25  3.25  0")
        assert table.take(row, None) is Take.TAKEN
    average = Line("# Avg bus bandwidth    : 110.5")
    assert table.take(average, nccl_tests.parse(average)) is Take.ENDED
    said = table.close()
    assert said is not None
    assert sum(name.startswith("busbw_gb_s.") for name in said.attributes) == 40
    assert said.attributes["time_s.1000"] == 0.0000105


def test_statistics_that_never_close_tell_what_came() -> None:
    block = async_trainer.parse(Line("[FullyAsyncRollouter][MonitorLoop][Statistics] {'count/staleness_samples': 5,"))
    assert block is not None
    assert not isinstance(block, Fact)
    assert block.take(Line(" 'monitor/active_tasks_size': 1"), None) is Take.TAKEN, "its number may miss digits"
    assert block.take(Line("[FullyAsyncRollouter] something"), None) is Take.IGNORED
    assert block.close() == Fact("async_trainer", {"what": "statistics", "staleness_samples": 5})
