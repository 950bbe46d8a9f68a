"""The step line: dialects, cuts, and what continues a cut line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest

from verlwatch.core.lines import Line, Numbers, step_metrics
from verlwatch.core.types import Record, Samples, Writer

ROUNDED = (
    "step:12 - actor/entropy:0.251 - actor/lr:0.000 - actor/grad_norm:nan - response_length/max:512.000 - "
    "timing_s/gen:41.250 - timing_s/ref:5.004 - timing_s/step:77.700 - perf/total_num_tokens:16437.000 - "
    "perf/throughput:35.700"
)
FULL = (
    "step:12 - actor/entropy:0.25103759765625 - actor/lr:np.float64(1e-06) - actor/grad_norm:np.float64(nan) - "
    "response_length/max:512 - timing_s/gen:41.25332123 - timing_s/ref:np.float64(5.0044) - "
    "timing_s/step:77.70125 - perf/total_num_tokens:16437 - perf/throughput:35.70125"
)
NEXT = FULL.replace("step:12", "step:13")
BAR = "\rTraining Progress:  33%|███▎      | 1/3 [00:00<00:00,  2.50it/s]"


def numbers_of(text: str, *, cut: bool | None = None) -> Numbers:
    """What a line says, as far as it came."""
    said = step_metrics.parse(Line(text, cut=cut))
    numbers = said if isinstance(said, Numbers | None) else said.close()
    assert numbers is not None
    return numbers


def values(text: str, *, cut: bool | None = None) -> Mapping[str, float]:
    return numbers_of(text, cut=cut).values


def ray(*texts: str) -> bytes:
    return "".join(f"(TaskRunner pid=4242) {text}\n" for text in texts).encode()


def merged(records: list[Record], step: int) -> dict[str, float]:
    samples = [record for record in records if isinstance(record, Samples) and record.step == step]
    return {key: value for sample in samples for key, value in sample.values.items()}


def same(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return {key: repr(value) for key, value in a.items()} == {key: repr(value) for key, value in b.items()}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.000", 1.0),
        ("-0.000", -0.0),
        ("10000000000000000000000.000", 1e22),
        ("37128", 37128.0),
        ("123456789012345678901", 123456789012345678901.0),
        ("1e-06", 1e-06),
        ("1e+22", 1e22),
        ("3.863382153213024e-05", 3.863382153213024e-05),
        ("0.1000000000000000055511151231257827", 0.1),
        ("np.float64(41.25)", 41.25),
        ("np.float32(0.1)", 0.1),
        ("np.int64(7)", 7.0),
        ("np.uint8(7)", 7.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("np.float64(-inf)", -math.inf),
        ("True", 1.0),
        ("False", 0.0),
        ("007", 7.0),
    ],
)
def test_a_value_is_the_float_of_its_text(text: str, number: float) -> None:
    found = values(f"step:1 - a/x:{text} - a/b:2.5")
    assert found["a/x"] == number
    assert math.copysign(1, found["a/x"]) == math.copysign(1, number)
    assert found["a/b"] == 2.5


@pytest.mark.parametrize("text", ["nan", "-nan", "np.float64(nan)"])
def test_nan_is_a_value(text: str) -> None:
    assert math.isnan(values(f"step:1 - a/x:{text} - a/b:2.5")["a/x"])


@pytest.mark.parametrize(
    "text",
    [
        *("", "6.", ".5", "1_000", "0x1f", "None", "null", "true", "[1]", "{}", '"5"', "1.2.3", "five", "1e", "--1"),
        *("np.float64(5", "np.float64(5))", "5)", "infinity", "\N{FULLWIDTH DIGIT ONE}", "\x00", "1\x00"),
    ],
)
def test_what_is_no_number_of_verl_is_left_out(text: str) -> None:
    assert values(f"step:1 - a/a:1.5 - a/x:{text} - a/b:np.float64(2.5)") == {"a/a": 1.5, "a/b": 2.5}


def test_keys_are_what_stands_before_the_last_colon() -> None:
    text = 'step:1 - val/a:b/acc@1:0.5 - val/my set (x)/acc:0.25 - val/"q"/acc:1 - val/b\\s/acc:2 - timing_s/step:3.5'
    assert values(text) == {
        "val/a:b/acc@1": 0.5,
        "val/my set (x)/acc": 0.25,
        'val/"q"/acc': 1.0,
        "val/b\\s/acc": 2.0,
        "timing_s/step": 3.5,
    }


def test_a_key_with_the_separator_inside_costs_only_itself() -> None:
    assert values("step:1 - a/b:1.5 - val/x - y/acc:0.5 - timing_s/step:3.5") == {
        "a/b": 1.5,
        "y/acc": 0.5,
        "timing_s/step": 3.5,
    }


@pytest.mark.parametrize(
    ("text", "decimals"),
    [
        (ROUNDED, 3),
        (FULL, None),
        ("step:1 - a/b:0.500", 3),
        ("step:1 - a/b:nan - a/c:0.500", 3),
        ("step:1 - a/b:nan - a/c:nan", None),
        ("step:1 - a/b:0.500 - a/c:0.25 - a/d:0.125", None),
        ("step:1 - a/b:0.500 - a/c:0.5000", None),
    ],
)
def test_three_decimals_everywhere_tell_a_log_that_rounds(text: str, decimals: int | None) -> None:
    assert numbers_of(text).decimals == decimals


@pytest.mark.parametrize("whole", [ROUNDED, FULL], ids=["rounded", "full"])
@pytest.mark.parametrize("followed_by", ["nothing", "a step line", "chatter"])
def test_a_line_cut_anywhere_yields_no_number_that_is_not_in_it(
    whole: str, followed_by: str, read: Callable[..., list[Record]]
) -> None:
    truth = values(whole)
    following = {"nothing": [], "a step line": [NEXT], "chatter": ["5", "0", "x - y", "3 - ok", BAR]}[followed_by]
    # A full float cut behind timing_s/step still looks like one: nothing in the line can tell.
    for at in range(8, len(whole) if whole == ROUNDED else whole.index("timing_s/step:") + 14):
        found = merged(read(ray(whole[:at], *following)), 12)
        assert same(found, {key: truth[key] for key in found}), whole[:at]


@pytest.mark.parametrize("writer", ["(TaskRunner pid=4242) ", ""])
@pytest.mark.parametrize("whole", [ROUNDED, FULL], ids=["rounded", "full"])
def test_a_line_cut_in_two_anywhere_is_read_as_one(whole: str, writer: str, read: Callable[..., list[Record]]) -> None:
    truth = values(whole)
    for at in range(len("step:1"), whole.index("timing_s/step:")):
        parts = (whole[:at], BAR, whole[at:], NEXT)
        data = "".join(f"{writer}{part}\n(WorkerDict pid=9) noise 3.5 - x/y:1\n" for part in parts).encode()
        records = read(data)
        assert [r.step for r in records if isinstance(r, Samples)] == [12, 13], whole[:at]
        assert same(merged(records, 12), truth), whole[:at]


def test_a_line_cut_by_a_bar_on_the_same_line_is_read_as_one(read: Callable[..., list[Record]]) -> None:
    at = FULL.index("timing_s/ref") + 5
    records = read(f"{FULL[:at]}{BAR}{FULL[at:]}\n".encode())
    assert same(merged(records, 12), values(FULL))


def test_an_empty_rest_says_that_nothing_was_cut(read: Callable[..., list[Record]]) -> None:
    records = read(ray("step:8 - rollout/vio:0.5 - timing_s/gen:40.5", "", "two", NEXT))
    assert merged(records, 8) == {"rollout/vio": 0.5, "timing_s/gen": 40.5}


def test_an_empty_line_of_a_file_without_prefixes_says_nothing(read: Callable[..., list[Record]]) -> None:
    assert merged(read(b"step:8 - rollout/vio:0.5 - timing_s/gen:40.5\n\nstep:9\n"), 8) == {"rollout/vio": 0.5}


def test_a_validation_line_is_whole_without_timing(read: Callable[..., list[Record]]) -> None:
    assert merged(read(ray("step:0 - val-core/gsm8k/acc/mean@1:0.45")), 0) == {"val-core/gsm8k/acc/mean@1": 0.45}


def test_a_step_without_values_is_a_step(read: Callable[..., list[Record]]) -> None:
    (record,) = read(ray("step:7"))
    assert isinstance(record, Samples)
    assert (record.step, dict(record.values)) == (7, {})


@pytest.mark.parametrize("name", ["WorkerDict", "AgentLoopWorker_3", "vLLMHttpServer", "AsyncRolloutServer"])
def test_a_rollout_worker_prints_no_step_lines(name: str) -> None:
    assert step_metrics.parse(Line(FULL, Writer(name, 7))) is None


@pytest.mark.parametrize("name", ["TaskRunner", "TaskRunnerV1", "main_task", "FullyAsyncTrainer", "Runner", ""])
def test_any_other_writer_may(name: str) -> None:
    assert step_metrics.parse(Line(FULL, Writer(name, 7))) is not None


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\u202e", "\x00"])
@pytest.mark.parametrize("form", ["{}", "np.float64({})"])
def test_a_key_with_a_control_character_is_not_read(sign: str, form: str) -> None:
    one = form.format("1.5")
    text = f"step:3 - actor/{sign}kl:{one} - actor/kl:{one} - timing_s/step:{one}"
    assert values(text) == {"actor/kl": 1.5, "timing_s/step": 1.5}


def test_a_step_beyond_all_runs_is_none() -> None:
    assert numbers_of(f"step:{10**12} - actor/kl:1.5 - timing_s/step:2.5").step == 10**12
    assert step_metrics.parse(Line(f"step:{10**12 + 1} - actor/kl:1.5 - timing_s/step:2.5")) is None
    assert step_metrics.parse(Line(f"step:{10**12 + 1}")) is None
    assert step_metrics.parse(Line(f"step:{10**12 + 1} -")) is None
