"""Step lines that a terminal, a page or a chat has broken are put together; a log is left as it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from verlwatch.core.lines._paste import rejoined
from verlwatch.core.types import Event, Record, Samples, Writer

Read = Callable[..., list[Record]]

KEYS = ["actor/entropy:0.34729", "actor/lr:1e-06", "val-aux/aime/reward/best@16/mean:-0.6218", "training/epoch:0"]
KEYS += [f"critic/returns/part_{i}:{i * 0.37 - 3}" for i in range(40)]
KEYS += ["perf/mfu/actor:np.float64(0.39)", "timing_s/gen:41.5", "timing_s/step:77.25", "perf/throughput:2932.5"]
LINE = " - ".join(["(TaskRunner pid=4242) step:60", *KEYS])
BAR = "Training Progress:   2%|▏         | 60/3499 [21:41:02<7621:31:21, 7978.33s/it]"


def wrapped(line: str, width: int, *, blanks: bool) -> str:
    rows = [line[at : at + width] for at in range(0, len(line), width)]
    return "\n".join(rows if blanks else [row.rstrip(" ") for row in rows])


@pytest.mark.parametrize("blanks", [True, False])
@pytest.mark.parametrize("width", range(100, 300, 7))
def test_a_line_wrapped_anywhere_is_one_again(width: int, *, blanks: bool) -> None:
    after = f"\n{BAR}\n(TaskRunner pid=4242) Training from scratch\n"
    assert rejoined((wrapped(LINE, width, blanks=blanks) + after).encode()).decode() == LINE + after


@pytest.mark.parametrize("form", ["\n - {}", "\n- {}", "\n   - {}  "])
def test_one_key_a_row_is_one_line(form: str, read: Read) -> None:
    text = LINE.partition(" - ")[0] + "".join(form.format(key) for key in KEYS) + "\n"
    assert rejoined(text.encode()).decode().rstrip() == LINE
    assert read(rejoined(text.encode())) == read(LINE.encode() + b"\n")


@pytest.mark.parametrize(
    "row",
    [
        *("(WorkerDict pid=9) a/b:1 - c/d:2", "INFO:root:x", "2026-01-02 03:04:05,678 a/b:1", "Traceback (most recent"),
        *(
            "Training Progress:   2%|x| 1/3 [",
            "step:61 - actor/lr:1e-06",
            "12345",
            "a sentence",
            "",
            "- no metric",
            "10",
        ),
        *("- item:1", "- see https://host:80 - and so on", "epoch 0, step 1", '  File "a.py", line 1', "x - y:1 - z:2"),
    ],
)
def test_a_row_of_its_own_is_not_joined(row: str) -> None:
    data = f"{LINE}\n{row}\nend\n".encode()
    assert rejoined(data) == data


def test_colours_that_have_lost_their_first_byte_come_off(read: Read) -> None:
    line = LINE.replace("(TaskRunner pid=4242)", "[36m(TaskRunner pid=4242)[0m")
    plan = "[36m(TaskRunner pid=4242)[0m Total training steps: 7[32m [repeated 3x across cluster][0m"
    samples, said = read(rejoined(f"{wrapped(line, 120, blanks=False)}\n{plan}\n".encode()))
    assert samples.origin.writer == said.origin.writer == Writer("TaskRunner", 4242)
    assert isinstance(samples, Samples)
    assert len(samples.values) == len(KEYS)
    assert isinstance(said, Event)
    assert said.attributes == {"total": 7, "repeated": 3}


@pytest.mark.parametrize("row", ["a", "a/b:1", " - a/b:1", "a:", "1", "step:1 - a/b:1 - "])
def test_many_rows_cost_what_their_length_deserves(row: str) -> None:
    def spent(rows: int) -> float:
        data = ("step:1 - a/b:1 - \n" + f"{row}\n" * rows).encode()
        times = []
        for _ in range(3):
            began = time.process_time()
            rejoined(data)
            times.append(time.process_time() - began)
        return min(times)

    spent(100)
    assert spent(32_000) < 128 * max(spent(1000), 1e-3)  # 32 times as many; quadratic would be 1,024 times


def test_a_number_at_a_row_of_full_width_ends_it() -> None:
    line = LINE[: 3 * 120 - 2] if LINE[3 * 120 - 3].isdigit() else LINE[: 3 * 120 + 2]
    assert rejoined(wrapped(line, 120, blanks=False).encode()).decode() == line


def test_a_recorded_log_is_left_as_it_is(recorded: Path) -> None:
    for path in recorded.iterdir():
        if path.suffix in {".log", ".jsonl"}:
            data = path.read_bytes()
            assert rejoined(data) == data, path.name


def test_bytes_that_are_no_text_come_back() -> None:
    assert rejoined(b"\xff\xfe\r\nstep:\n\x00") == b"\xff\xfe\r\nstep:\n\x00"


BESIDE = Path(__file__).parents[4] / "shared" / "corpus"


@pytest.mark.parametrize("number", ["003", "016"])
def test_a_public_paste_reads_as_its_notes_say(number: str, read: Read) -> None:
    import yaml

    if not BESIDE.is_dir():
        pytest.skip("needs excerpts of public logs beside the repository")
    (log,) = BESIDE.glob(f"{number}-*.log")
    expect = yaml.safe_load(log.with_suffix(".yaml").read_text())["expect"]
    samples = [record for record in read(rejoined(log.read_bytes())) if isinstance(record, Samples)]
    assert [record.step for record in samples] == expect["steps"]
    told = {key: value for key, value in {**expect, **expect.get("timings", {})}.items() if "/" in key}
    assert len(told) >= 6
    assert {key: samples[0].values.get(key) for key in told} == told
