"""Sources of one run on several hosts: whoever is heard first, it is the same run."""

from __future__ import annotations

from pathlib import Path

from verlwatch.core.engine import Engine, merged
from verlwatch.core.types import Chunk, Outcome

CONSOLE, JSONL = "verl-0.9.1.numpy2.nocolor.driver.log", "verl-0.9.1.file_logger.jsonl"


def judged(recorded: Path, *names: str) -> Outcome:
    engine = Engine()
    return merged(engine.feed(Chunk(name, 1, 0, (recorded / name).read_bytes(), run="qwen"), 0.0) for name in names)


def test_the_steps_of_console_and_file_log_are_those_of_one_attempt(recorded: Path) -> None:
    steps = {(row.attempt, row.step) for row in judged(recorded, CONSOLE, JSONL).steps}
    assert steps == {(1, step) for step in range(301)}


def test_so_they_are_when_the_file_log_is_heard_first(recorded: Path) -> None:
    steps = {(row.attempt, row.step) for row in judged(recorded, JSONL, CONSOLE).steps}
    assert steps == {(1, step) for step in range(301)}
