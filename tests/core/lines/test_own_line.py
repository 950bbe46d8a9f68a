"""What a line of the user's own says: which number, of what, whose, in which unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from verlwatch.core.lines import KINDS, Fact, Line, Numbers
from verlwatch.core.lines._own import LONGEST, OwnLine, UnreadableError
from verlwatch.core.types import Event, Record, Samples, Writer

Read = Callable[..., list[Record]]
Attributes = dict[str, str | int | float]
CORPUS = Path(__file__).parents[3] / "../shared/corpus"
RESHARD = r"sharding_manager (?P<metric>\w+) time%: (?P<value>[0-9.]+)"
SECONDS = (3.25, 3.125, 3.0, 3.5, 8.25, 8.125, 9.75, 9.875)
WORKERS = b"".join(
    b"(WorkerDict pid=%d) $megatron_workers$ %%with sharding_manager __enter__ time%%: %s\n"
    % (4100 + rank, str(seconds * 1000).encode())
    for rank, seconds in enumerate(SECONDS)
)


def own(pattern: str, unit: str = "", contains: bytes = b"probe") -> OwnLine:
    """Python's own engine will do for patterns that are known."""
    compiled = re.compile(pattern)

    def search(text: str) -> Mapping[str, str] | None:
        match = compiled.search(text)
        return match and {name: held for name, held in match.groupdict().items() if held}

    return OwnLine("probe_line", (contains,), search, unit)


def said(pattern: str, text: str, unit: str = "") -> Numbers | Fact | None:
    return own(pattern, unit).parse(Line(text))


def test_each_workers_time_is_read_with_the_process_that_printed_it(read: Read) -> None:
    kind = own(RESHARD, "ms", b"sharding_manager __enter__ time%")
    records = read(WORKERS + b"(WorkerDict pid=4100) something else\n", kinds=(*KINDS, kind))
    assert [(record.origin.writer.pid, record.origin.kind) for record in records] == [
        (4100 + rank, "probe_line") for rank in range(8)
    ]
    assert [record.attributes for record in records if isinstance(record, Event) and record.name == "own"] == [
        {"line": "probe_line", "metric": "__enter__", "value": seconds, "unit": "s"} for seconds in SECONDS
    ]


def test_the_excerpt_from_a_real_log_is_read_as_its_note_says(read: Read) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the real excerpts are not here")
    (log,) = CORPUS.glob("033-*.log")
    expected = re.search(r"per_worker_ms: \[(.*)\]", log.with_suffix(".yaml").read_text())
    assert expected
    records = read(log.read_bytes(), kinds=(*KINDS, own(RESHARD, "ms", b"sharding_manager __enter__ time%")))
    values = [record.attributes["value"] for record in records if isinstance(record, Event) and record.name == "own"]
    assert values == [float(text) / 1000 for text in expected[1].split(",")]


@pytest.mark.parametrize(
    ("text", "unit", "value", "canonical"),
    [
        ("250", "ns", 2.5e-7, "s"),
        ("250", "us", 0.00025, "s"),
        ("250", "µs", 0.00025, "s"),
        ("250", "ms", 0.25, "s"),
        ("2.5", "s", 2.5, "s"),
        ("2.5", "min", 150.0, "s"),
        ("2.5", "h", 9000.0, "s"),
        ("1073741824", "B", 1.0, "GB"),
        ("1048576", "KB", 1.0, "GB"),
        ("1048576", "KiB", 1.0, "GB"),
        ("512", "MB", 0.5, "GB"),
        ("512", "MiB", 0.5, "GB"),
        ("61.4", "GB", 61.4, "GB"),
        ("61.4", "GiB", 61.4, "GB"),
        ("87.5", "%", 87.5, "%"),
        ("87.5", "MS", 0.0875, "s"),
        ("2.5", "S", 2.5, "s"),
        ("2.5", "Min", 150.0, "s"),
        ("87.5", "gb", 87.5, "gb"),
        ("12", "tokens", 12.0, "tokens"),
    ],
)
def test_times_become_seconds_and_sizes_gigabytes(text: str, unit: str, value: float, canonical: str) -> None:
    expected: Attributes = {"line": "probe_line", "metric": "probe_line", "value": value, "unit": canonical}
    assert said(r"(?P<value>[0-9.]+)", f"took {text}", unit) == Fact("own", expected)
    assert said(r"(?P<value>[0-9.]+) ?(?P<unit>\S+)", f"took {text} {unit}", "h") == Fact("own", expected)


def test_a_value_without_unit_has_none() -> None:
    assert said(r"x=(?P<value>\S+)", "x=-1.5e3") == Fact(
        "own", {"line": "probe_line", "metric": "probe_line", "value": -1500.0}
    )


def test_the_configured_unit_stands_where_the_line_says_none() -> None:
    pattern = r"took (?P<value>[0-9]+)(?P<unit>ms|s)?"
    values = [
        fact.attributes["value"]
        for text in ("took 7", "took 7s")
        if isinstance(fact := said(pattern, text, "ms"), Fact)
    ]
    assert values == [0.007, 7.0]


def test_a_number_of_a_step_belongs_to_the_step() -> None:
    pattern = r"step (?P<step>\d+): (?P<metric>[\w ]+) (?P<value>[0-9.]+)"
    assert said(pattern, "step 12: data wait 1.5", "s") == Numbers(12, {"own/data wait": 1.5})


def test_one_ranks_number_of_a_step_is_not_the_steps() -> None:
    fact = said(r"step (?P<step>\d+) rank (?P<rank>\d+) (?P<value>\d+)", "step 12 rank 3 40", "ms")
    assert fact == Fact(
        "own",
        {"line": "probe_line", "metric": "probe_line", "value": 0.04, "unit": "s", "rank": 3, "step": 12},
    )


def test_who_prints_model_output_tells_no_numbers_of_a_step() -> None:
    kind = own(r"step (?P<step>\d+) (?P<value>\d+)")
    assert isinstance(kind.parse(Line("step 12 40", Writer("TaskRunner", 7))), Numbers)
    assert isinstance(kind.parse(Line("step 12 40", Writer("AgentLoopWorker", 7))), Fact)


@pytest.mark.parametrize("value", ["", "1,234", "1_000", "12.5.", "nan", "inf", "0x1f", "1e400", "٥", "9" * 50])  # noqa: RUF001 - an Arabic digit
def test_what_is_no_number_is_not_read(value: str) -> None:
    kind = own(r"x=(?P<value>\S*)")
    line = Line(f"x={value}")
    assert kind.parse(line) is None
    groups = kind.groups(line)
    assert groups is not None
    with pytest.raises(UnreadableError, match="value"):
        kind.read(groups, line)


@pytest.mark.parametrize(
    "text", ["step 1e3 rank 0 value 1", "step -1 rank 0 value 1", f"step 1 rank {'9' * 19} value 1"]
)
def test_a_rank_or_step_that_is_no_whole_number_spoils_the_line(text: str) -> None:
    assert said(r"step (?P<step>\S+) rank (?P<rank>\S+) value (?P<value>\d)", "step 1 rank 0 value 1")
    assert said(r"step (?P<step>\S+) rank (?P<rank>\S+) value (?P<value>\d)", text) is None


@pytest.mark.parametrize("metric", ["a" * 101, "a\x1b[0m"])
def test_a_metric_that_is_no_name_spoils_the_line(metric: str) -> None:
    assert said(r"(?P<metric>.+)=(?P<value>\d)", f"{metric}=1") is None


def test_of_a_line_without_its_end_nothing_is_read() -> None:
    kind = own(r"took (?P<value>\d+)(?P<unit>ms)?", "s")
    assert kind.parse(Line("took 12m", cut=True)) is None
    assert kind.parse(Line("took 12ms")) == Fact(
        "own", {"line": "probe_line", "metric": "probe_line", "value": 0.012, "unit": "s"}
    )


def test_a_message_that_is_far_too_long_is_not_searched() -> None:
    kind = own(r"(?P<value>\d+)$")
    assert kind.parse(Line("x" * (LONGEST - 1) + "1"))
    assert kind.parse(Line("x" * LONGEST + "1")) is None


def test_a_line_that_a_built_in_kind_reads_stays_its_own(read: Read) -> None:
    greedy = own(r"step:(?P<step>\d+).*gen:(?P<value>[0-9.]+)", contains=b"timing_s/gen")
    line = b"(TaskRunner pid=7) step:3 - timing_s/gen:2.5 - timing_s/step:4.5 - perf/throughput:100.0\n"
    (record,) = read(line, kinds=(*KINDS, greedy))
    assert isinstance(record, Samples)
    assert record.origin.kind == "step_metrics"
