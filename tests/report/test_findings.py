"""Each finding with a log that shows it and a near miss that does not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.report.made import config, names, reported, steps

AGENT = "timing_s/agent_loop/"
VLLM = (
    "(vLLMHttpServer pid=9) INFO 04-01 12:00:0{i} [loggers.py:257] Engine 000: Avg prompt throughput: 7.0 tokens/s, "
    "Avg generation throughput: 520.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs{more}, "
    "GPU KV cache usage: {cache}%, Prefix cache hit rate: 5.2%"
)


def growing(gen_per_token_ms: float = 2.0, grows: float = 0.4, count: int = 14) -> Iterator[str]:
    """Few steps whose responses grow, and their times with them; prompts are 100 of 300 tokens at first."""
    for step in range(1, count + 1):
        work = 1 + grows * (step - 1) / (count - 1)
        extra = 1.5 if step > count / 2 and gen_per_token_ms > 2.0 else 1.0
        gen, update = 2.0 * 20 * work * extra, 20 * work
        yield (
            f"step:{step} - response_length/mean:{200 * work} - response_length/max:1024.0"
            f" - prompt_length/mean:{100 * work} - timing_s/gen:{gen} - timing_s/update_actor:{update}"
            f" - timing_s/step:{gen + update + 1}"
            f" - perf/total_num_tokens:{round(30000 * work)} - perf/throughput:900.5"
        )


def even(count: int) -> Iterator[str]:
    """Steps of which no phase takes half."""
    for step in range(1, count + 1):
        yield f"step:{step} - timing_s/gen:20.5 - timing_s/ref:20.5 - timing_s/update_actor:15.5 - timing_s/step:60.5"


def gpu_rows(utilization: int) -> list[str]:
    return [
        f"2026/05/21 10:30:0{i}.123, {gpu}, NVIDIA H100 80GB HBM3, GPU-7d1f0c3a-5b6e-4a87-9c1d-2f3e4a5b6c7{gpu}, "
        f"28123 MiB, 81559 MiB, {utilization} %"
        for i in range(4)
        for gpu in range(2)
    ]


def vllm(running: int, waiting: int, cache: float, more: str = "") -> list[str]:
    return [VLLM.format(i=i, running=running, waiting=waiting, cache=cache, more=more) for i in range(8)]


def memory(first: float, others: float) -> list[str]:
    cards = ", ".join(f"GPU {i}: {first if i == 0 else others}GB / 80GB" for i in range(4))
    return [f"[INFO] After rollout generation: {cards}"]


def agent(**seconds: float) -> dict[str, object]:
    return {f"{AGENT}{name.replace('__', '/')}": value for name, value in seconds.items()}


@pytest.mark.parametrize(
    ("name", "shown", "near"),
    [
        ("bound_by", list(steps(6)), list(even(6))),
        (
            "gen_long_tail",
            list(steps(6, also=agent(generate_sequences__mean=10, generate_sequences__max=19))),
            list(steps(6, also=agent(generate_sequences__mean=17, generate_sequences__max=19))),
        ),
        (
            "tool_calls_slow",
            list(steps(6, also=agent(generate_sequences__mean=10, tool_calls__mean=3))),
            list(steps(6, also=agent(generate_sequences__mean=10, tool_calls__mean=1))),
        ),
        (
            "responses_clipped",
            [*config(data__max_response_length=1024), *steps(6, also={"response_length/clip_ratio": 0.2})],
            [*config(data__max_response_length=1024), *steps(6, also={"response_length/clip_ratio": 0.001})],
        ),
        ("kv_cache_full", [*steps(4), *vllm(9, 6, 99.5)], [*steps(4), *vllm(9, 0, 50.0)]),
        ("kv_cache_full", [*steps(4), *vllm(9, 6, 60.0, ", Preemptions: 2")], [*steps(4), *vllm(0, 0, 99.5)]),
        ("requests_waiting", [*steps(4), *vllm(9, 6, 30.0)], [*steps(4), *vllm(9, 6, 99.5)]),
        (
            "update_weights_slow",
            list(steps(6, also={"timing_s/update_weights": 8.0})),
            list(steps(6, also={"timing_s/update_weights": 1.0})),
        ),
        (
            "data_supply",
            [*steps(4), '{ "rollout_throughput": "120 samples/s", "dataloader_fetch_time": "9s" }'],
            [*steps(4), '{ "rollout_throughput": "120 samples/s", "dataloader_fetch_time": "45ms" }'],
        ),
        ("utilisation_low", [*steps(4), *gpu_rows(20)], [*steps(4), *gpu_rows(90)]),
        (
            "interruptions",
            [
                *steps(4),
                "step:5 - timing_s/gen:20.0 - timing_s/update_actor:29.5 - timing_s/testing:90.0 - timing_s/step:140.5",
            ],
            [
                *steps(40),
                "step:41 - timing_s/gen:20.0 - timing_s/update_actor:29.5 - timing_s/testing:9.0 - timing_s/step:60.0",
            ],
        ),
        ("memory_unequal", [*steps(4), *memory(45.0, 28.0)], [*steps(4), *memory(28.3, 28.0)]),
        ("memory_high", [*steps(4), *memory(75.0, 75.0)], [*steps(4), *memory(60.0, 60.0)]),
        ("workload_growth", list(growing()), list(growing(grows=0.02))),
        ("gen_slow", list(growing(4.0, 0.0)), list(growing())),
        ("gen_slow", list(steps(60, slow=dict.fromkeys(range(40, 61), 1.6))), list(steps(60))),
    ],
)
def test_a_finding_is_told_where_the_log_shows_it(
    name: str, shown: Sequence[str], near: Sequence[str], tmp_path: Path
) -> None:
    assert name in names(reported(tmp_path, *shown))
    assert name not in names(reported(tmp_path, *near))


def test_growth_of_the_work_is_no_fault(tmp_path: Path) -> None:
    found = reported(tmp_path, *growing())
    assert found.incidents == ()
    growth = next(f for f in found.findings if f.name == "workload_growth")
    assert growth.confidence == "likely"
    assert "no fault" in found.headline
    assert found.over_run is not None
    assert found.over_run.step is not None
    assert found.over_run.step.ratio == pytest.approx(1.0, abs=0.02)


def test_a_small_difference_of_memory_is_a_remark_to_act_on_by_nobody(tmp_path: Path) -> None:
    rows = config(actor_rollout_ref__rollout__gpu_memory_utilization=0.6)
    found = reported(tmp_path, *rows, *steps(4), *memory(29.0, 28.0))
    unequal = next(f for f in found.findings if f.name == "memory_unequal")
    assert unequal.severity == "info"
    assert found.advice == ()


def test_a_slow_phase_leads_to_the_keys_of_this_run(tmp_path: Path) -> None:
    rows = config(
        trainer__nnodes=1,
        trainer__n_gpus_per_node=8,
        actor_rollout_ref__rollout__enforce_eager=True,
        actor_rollout_ref__rollout__max_num_seqs=128,
    )
    found = reported(tmp_path, *rows, *steps(60, slow=dict.fromkeys(range(40, 61), 1.6)))
    assert {(a.key, a.value, a.attempt) for a in found.advice} == {
        ("actor_rollout_ref.rollout.enforce_eager", "true", "false"),
        ("actor_rollout_ref.rollout.max_num_seqs", 128, "more: 256"),
    }
    assert {fact.key for fact in found.config} >= {a.key for a in found.advice}


def test_what_is_missing_is_said_with_how_to_turn_it_on(tmp_path: Path) -> None:
    found = reported(tmp_path, "nothing here")
    assert found.missing[0].what == "where the time of a step goes"
    assert "trainer.logger" in found.missing[0].turn_on
    assert found.headline == "No step with timing was found."
    with_engine = reported(tmp_path, *steps(4), *vllm(9, 0, 30.0))
    assert not any("KV cache" in m.what for m in with_engine.missing)


def test_a_command_line_says_what_is_configured_where_nothing_else_does(tmp_path: Path) -> None:
    command = (
        "+ python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=8 trainer.nnodes=2 trainer.n_gpus_per_node=4 "
        "actor_rollout_ref.actor.fsdp_config.param_offload=True"
    )
    found = reported(tmp_path, command, *steps(5))
    assert found.run.gpus == 8
    assert dict(found.config)["actor_rollout_ref.actor.fsdp_config.param_offload"] == "true"
    printed = config(trainer__nnodes=1, trainer__n_gpus_per_node=4)
    assert reported(tmp_path, command, *printed, *steps(5)).run.gpus == 4


def agent_steps(engine: float, mean: float, tools: float) -> Iterator[str]:
    """60 steps whose generation gets slower at step 40, for what its slowest sample then takes."""
    for step in range(1, 61):
        late = step >= 40
        slow, of_tools = (engine, tools) if late else (19.0, 0.5)
        gen = slow + of_tools + 0.01 * (step % 7)
        yield (
            f"step:{step} - timing_s/agent_loop/generate_sequences/max:{slow + of_tools}"
            f" - timing_s/agent_loop/generate_sequences/mean:{mean if late else 15.0}"
            f" - timing_s/agent_loop/slowest/generate_sequences:{slow}"
            f" - timing_s/agent_loop/slowest/tool_calls:{of_tools} - timing_s/gen:{gen} - timing_s/update_actor:29.5"
            f" - timing_s/step:{gen + 30} - perf/total_num_tokens:10000 - perf/throughput:900.5"
        )


@pytest.mark.parametrize(
    ("engine", "mean", "tools", "said"),
    [
        (39.0, 31.0, 0.5, {"the engine's generation brings 20 s"}),
        (19.0, 30.0, 25.0, {"waiting for tools brings 24.5 s"}),
        (39.0, 15.2, 0.5, {"the engine's generation brings 20 s", "Its long tail has grown"}),
    ],
)
def test_the_part_of_generation_that_got_slower_is_named(
    engine: float, mean: float, tools: float, said: set[str], tmp_path: Path
) -> None:
    found = reported(tmp_path, *agent_steps(engine, mean, tools))
    (incident,) = (i for i in found.incidents if i.attribution is not None)
    everything = {"the engine's generation brings 20 s", "waiting for tools brings 24.5 s", "Its long tail has grown"}
    assert {text for text in everything if text in incident.text} == said


def whole(slower: float, between: float) -> Iterator[str]:
    """80 steps; from step 40 on every phase takes ``slower`` times as long, and the time between them is longer."""
    noise = random.Random(1)
    for step in range(1, 81):
        late = step >= 40
        times = {"gen": 40.0, "old_log_prob": 6.0, "ref": 5.0, "update_actor": 18.0}
        times = {name: s * (slower if late else 1) * noise.gauss(1, 0.01) for name, s in times.items()}
        total = sum(times.values()) + (between if late else 1.0)
        printed = " - ".join(f"timing_s/{name}:{s!r}" for name, s in times.items())
        yield f"step:{step} - {printed} - timing_s/step:{total!r} - perf/total_num_tokens:10000 - perf/throughput:900.5"


def test_every_phase_slower_at_once_is_no_matter_of_one_phase(tmp_path: Path) -> None:
    rows = config(actor_rollout_ref__rollout__enforce_eager=True)
    found = reported(tmp_path, *rows, *whole(1.5, 1.0))
    assert {"all_slow"} <= names(found)
    assert "gen_slow" not in names(found)
    assert found.advice == ()
    assert "host or the network" in found.headline
    assert found.cost is not None
    assert found.cost.lost is not None
    assert found.cost.lost.seconds == pytest.approx(41 * 0.5 * 69, rel=0.03)


def test_time_between_the_phases_is_told_once(tmp_path: Path) -> None:
    found = reported(tmp_path, *whole(1.0, 30.0))
    assert [f.name for f in found.findings].count("other_slow") == 1
    assert found.headline.startswith("Time between the phases is what slowed the run")
    assert "all_slow" not in names(found)


def test_a_card_that_moves_away_from_the_others_is_no_shard_that_was_cut_wrong(tmp_path: Path) -> None:
    rows = config(
        trainer__nnodes=1, trainer__n_gpus_per_node=2, actor_rollout_ref__rollout__tensor_model_parallel_size=2
    )
    climbing = [line for i, step in enumerate(steps(12)) for line in (step, *memory(28.0 + 3.0 * max(0, i - 5), 28.0))]
    found = reported(tmp_path, *rows, *climbing)
    left = next(f for f in found.findings if f.name == "memory_accumulates")
    assert left.step == 7
    assert "memory_unequal" not in names(found)
    assert found.advice == ()
