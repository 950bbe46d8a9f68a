"""What a source has said once and means for all that follows."""

from __future__ import annotations

from verlwatch.core.lines import Fact, Line, Reader, step_metrics
from verlwatch.core.types import Event, Record, Writer

FILE = "/logs/worker-" + "0f" * 28 + "-01000000-4242.out"
STEP = b"step:3 - timing_s/gen:1.5 - timing_s/step:2.5\n"


class Broken:
    """A kind that reads a fault in every line with its needle."""

    NAME = "broken"
    NEEDLES = (b"it broke", b"Training Progress", b"Training from scratch")

    def parse(self, line: Line, /) -> Fact | None:
        """A fault, the end or the beginning of training."""
        if line.is_bar:
            return Fact("progress", {"done": 3, "total": 3})
        if line.text == "Training from scratch":
            return Fact("resume")
        return Fact("fault", {"class": "broken"}, "critical") if line.text == "it broke" else None


def writers(records: list[Record]) -> list[Writer]:
    return [record.origin.writer for record in records]


def test_the_writer_of_a_worker_file_is_named_by_its_head_and_its_name() -> None:
    reader = Reader(FILE)
    records = reader.feed(b":job_id:01000000\n:actor_name:TaskRunner\n" + STEP, 0.0)
    assert writers(records)[-1] == Writer("TaskRunner", 4242)


def test_the_head_of_another_file_names_nobody() -> None:
    assert writers(Reader("train.log").feed(b":actor_name:TaskRunner\n" + STEP, 0.0))[-1] == Writer()


def test_a_model_cannot_make_its_worker_a_trainer() -> None:
    reader = Reader(FILE)
    records = reader.feed(b":actor_name:AgentLoopWorker\n:actor_name:TaskRunner\n" + STEP, 0.0)
    assert reader.context == "0 0 0 AgentLoopWorker"
    assert all(isinstance(record, Event) for record in records)


def test_what_a_worker_file_is_survives_a_restart() -> None:
    head = b":actor_name:AgentLoopWorker\n"
    first = Reader(FILE)
    first.feed(head, 0.0)
    again = Reader(FILE, 0, first.reread_from, first.mark, applied_to=first.offset, context=first.context)
    assert again.feed(STEP, 0.0) == []  # text of a model: it is no trainer that writes here
    assert again.context == first.context == "0 0 0 AgentLoopWorker"


def test_the_file_says_more_than_a_prefix() -> None:
    """A worker file has none: whatever looks like one was printed by its process."""
    reader = Reader(FILE)
    assert len(reader.feed(b":actor_name:WorkerDict\n(TaskRunner pid=7) " + STEP, 0.0)) == 1


def test_what_breaks_after_the_end_of_training_is_no_fault() -> None:
    kinds = (step_metrics, Broken())
    reader = Reader("train.log", kinds=kinds)
    bar = b"Training Progress: 100%|###| 3/3 [00:09<00:00,  3.00s/it]\n"
    records = reader.feed(b"it broke\n" + bar + b"it broke\n" + STEP + b"it broke\n", 0.0)
    faults = [(record.name, record.severity) for record in records if isinstance(record, Event)]
    assert faults == [("fault", "critical"), ("progress", "info"), ("fault", "critical"), ("shutdown_noise", "info")]
    again = Reader("train.log", 0, reader.reread_from, reader.mark, kinds=kinds, context=reader.context)
    later = again.feed(b"it broke\nTraining from scratch\nit broke\n", 0.0)
    assert [record.name for record in later if isinstance(record, Event)] == ["shutdown_noise", "resume", "fault"]
