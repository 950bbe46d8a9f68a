"""Own lines on their way through an engine: from when on they are read, what becomes of them, what they leave alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from verlwatch import roles
from verlwatch.config import Config
from verlwatch.core.engine import Engine
from verlwatch.core.gather import Gatherer
from verlwatch.core.lines._own import OwnLine
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Event, Outcome, Samples, Snapshot

WAIT = b"(TaskRunner pid=7) step 3: data wait took 250 ms\n"
RESHARD = b"(WorkerDict pid=9) reshard took 40 ms\n"
STEP = b"(TaskRunner pid=7) step:3 - timing_s/gen:2.5 - timing_s/step:4.5 - perf/throughput:100.0\n"


def own(name: str, contains: bytes, pattern: str) -> OwnLine:
    compiled = re.compile(pattern)

    def search(text: str) -> Mapping[str, str] | None:
        match = compiled.search(text)
        return match and match.groupdict()

    return OwnLine(name, (contains,), search, "ms")


WAITS = own("data_wait", b"data wait took", r"step (?P<step>\d+): data wait took (?P<value>\d+)")
RESHARDS = own("reshard", b"reshard took", r"reshard took (?P<value>\d+)")


class Feed:
    """A source that grows."""

    def __init__(self, engine: Engine | Gatherer) -> None:
        self.engine = engine
        self.offset = 0

    def __call__(self, data: bytes) -> Outcome:
        outcome = self.engine.feed(Chunk("/run.log", 1, self.offset, data, run="r"), 0.0)
        self.offset += len(data)
        return outcome


def test_a_number_of_a_step_is_kept_with_the_steps_other_values() -> None:
    engine = Engine()
    engine.read_also((WAITS,))
    outcome = Feed(engine)(STEP + WAIT)
    values = [dict(row.values) for row in outcome.steps]
    assert [row.step for row in outcome.steps] == [3, 3]
    assert values[1] == {"own/data_wait": 0.25}
    assert engine.runs["r"].attempts.current == 1


def test_an_agent_ships_them_like_any_other_record() -> None:
    gatherer = Gatherer()
    gatherer.read_also((WAITS, RESHARDS))
    (extract,) = Feed(gatherer)(WAIT + RESHARD).extracts
    samples, event = extract.records
    assert isinstance(samples, Samples)
    assert (samples.origin.kind, samples.step, samples.values) == ("data_wait", 3, {"own/data_wait": 0.25})
    assert isinstance(event, Event)
    assert (event.origin.kind, event.origin.writer.pid, event.name) == ("reshard", 9, "own")


def test_others_hold_from_the_next_bytes_on_also_for_the_half_line_before() -> None:
    gatherer = Gatherer()
    gatherer.read_also((WAITS,))
    feed = Feed(gatherer)
    kinds = [record.origin.kind for part in feed(WAIT + RESHARD + RESHARD[:20]).extracts for record in part.records]
    assert kinds == ["data_wait"]
    gatherer.reconfigure(Settings())
    gatherer.read_also((RESHARDS,))
    (extract,) = feed(RESHARD[20:] + WAIT + STEP).extracts
    assert [record.origin.kind for record in extract.records] == ["reshard", "step_metrics"]


def test_after_a_restart_with_others_nothing_is_told_twice() -> None:
    first = Gatherer()
    first.read_also((WAITS,))
    (cursor,) = Feed(first)(WAIT + WAIT[:30]).cursors
    second = Gatherer()
    second.restore(Snapshot(cursors=(cursor,)))
    second.read_also((WAITS, RESHARDS))
    outcome = second.feed(Chunk("/run.log", 1, cursor.reread_from, WAIT + RESHARD, run="r"), 0.0)
    assert [record.origin.kind for part in outcome.extracts for record in part.records] == ["data_wait", "reshard"]


def test_they_do_not_end_a_step_line_that_waits_for_its_rest() -> None:
    """The second half of a line that was cut holds what a pattern looks for; it stays the step's."""
    throughput = own("tput", b"perf/throughput", r"perf/throughput:(?P<value>[0-9.]+)")
    cut = STEP.index(b"en:2.5")
    two = STEP[:cut] + b"\n(TaskRunner pid=7) " + STEP[cut:]
    gatherer = Gatherer()
    gatherer.read_also((throughput,))
    (extract,) = Feed(gatherer)(two).extracts
    (samples,) = (record for record in extract.records if isinstance(record, Samples))
    assert samples.values == {"timing_s/gen": 2.5, "timing_s/step": 4.5, "perf/throughput": 100.0}


def test_what_is_configured_is_what_is_read() -> None:
    lines = [{"name": "reshard", "contains": "reshard took", "pattern": r"took (?P<value>\d+) (?P<unit>\w+)"}]
    config = Config.model_validate({"lines": lines})
    agent = {"hub": "https://hub.example.org", "token_file": "/token"}
    for each in (config, Config.model_validate({"lines": lines, "agent": agent})):
        engine = roles.engine(each)
        Feed(engine)(RESHARD)
        assert [kind.NAME for kind in engine.readers["/run.log"].kinds][-1] == "reshard"
