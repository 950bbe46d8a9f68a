"""Restarts and resumes in console and JSONL, read in any order: the live attempt is always the current one."""

from __future__ import annotations

import json
import random

import pytest

from tests.conftest import SOAK
from verlwatch.core.engine import Engine
from verlwatch.core.types import Chunk

HISTORIES = 5000 if SOAK else 300
Piece = tuple[str, int, str]


def attempt(number: int, first: int, last: int, seed: random.Random) -> list[tuple[str, str]]:
    """The steps of one process, as the console and as the JSONL print them."""
    both = []
    for step in range(first, last + 1):
        values = {name: seed.uniform(0.9, 1.1) * s for name, s in (("gen", 40.0), ("ref", 5.0), ("step", 50.0))}
        console = " - ".join(f"timing_s/{name}:{value!r}" for name, value in values.items())
        data = {f"timing_s/{name}": value for name, value in values.items()}
        both.append(
            (
                f"(TaskRunner pid={1000 + number}) step:{step} - actor/lr:1e-06 - {console} - perf/throughput:1.5\n",
                json.dumps({"step": step, "data": data}) + "\n",
            )
        )
    return both


def history(seed: random.Random) -> tuple[list[Piece], int, int]:
    """Pieces (source, generation, text) in the order of reading, the last step, and the number of attempts."""
    console: list[Piece] = []
    jsonl: list[Piece] = []
    start, count = 0, seed.choice([1, 2, 2, 3])
    for number in range(count):
        last = start + seed.randint(2, 25)
        if number and seed.random() < 0.7:
            console.append(("log", 1, f"(TaskRunner pid={1000 + number}) Setting global step to {start}\n"))
        for shown, told in attempt(number, start + 1, last, seed):
            console.append(("log", 1, shown))
            jsonl.append(("jsonl", number + 1, told))
        start = max(0, last - seed.choice([0, 1, 3, 10, 100]))
    left = [piece for piece in jsonl if piece[1] == count]  # what a truncated file still holds
    match seed.choice(["console first", "jsonl first", "jsonl lags"]):
        case "console first":
            return console + left, last, count
        case "jsonl first":
            return left + console, last, count
    lag, order, waiting = seed.randint(0, 3), [], list(jsonl)
    for at, piece in enumerate(console):
        order.append(piece)
        if at >= lag and "step:" in piece[2]:
            order.append(waiting.pop(0))
    return order + waiting, last, count


@pytest.mark.parametrize("first", range(0, HISTORIES, 50))
def test_the_live_attempt_is_the_current_one_and_judged_to_its_last_step(first: int) -> None:
    for number in range(first, first + 50):
        pieces, last, count = history(random.Random(number))
        engine, offsets = Engine(), dict[tuple[str, int], int]()
        for source, generation, text in pieces:
            at = offsets.get((source, generation), 0)
            engine.feed(Chunk(source, generation, at, text.encode(), run="r", history_to=1 << 40), 0.0)
            offsets[source, generation] = at + len(text)
        run = engine.runs["r"]
        assert run.step == last, number
        assert run.judged.last["gen"] == (run.attempts.current, last), number
        assert run.attempts.current <= count + 1, number
        assert not run.astray, number


def folder(seed: random.Random) -> tuple[list[Piece], list[tuple[str, str]], int, int]:
    """One console log and one JSONL for each attempt, read file after file; then the last attempt goes on."""
    start, count = 0, seed.choice([2, 3, 4])
    console: list[Piece] = []
    jsonl: list[Piece] = []
    for number in range(count):
        last = start + seed.randint(20, 60)
        resume = f"Setting global step to {start}" if start else "Training from scratch"
        steps = attempt(number, start + 1, last + (40 if number == count - 1 else 0), seed)
        shown = "".join(line for line, _ in steps[: last - start])
        console.append((f"log-{number}", 0, f"(TaskRunner pid={1000 + number}) {resume}\n{shown}"))
        jsonl.append((f"jsonl-{number}", 0, "".join(line for _, line in steps[: last - start])))
        if number < count - 1:
            start = max(0, last - seed.choice([0, 3, 10, 100]))
    return seed.choice([console + jsonl, jsonl + console]), steps[last - start :], last, count


@pytest.mark.parametrize("first", range(0, HISTORIES, 50))
def test_of_many_files_the_live_attempt_is_judged(first: int) -> None:
    for number in range(first, first + 50):
        seed = random.Random(number)
        pieces, live, last, count = folder(seed)
        engine, offsets = Engine(), dict[str, int]()
        for source, generation, text in pieces:
            engine.feed(Chunk(source, generation, 0, text.encode(), run="r", history_to=len(text)), 0.0)
            offsets[source] = len(text)
        for lines in live:
            both = [(f"log-{count - 1}", lines[0]), (f"jsonl-{count - 1}", lines[1])]
            for source, text in seed.sample(both, 2):
                engine.feed(Chunk(source, 0, offsets[source], text.encode(), run="r"), 0.0)
                offsets[source] += len(text)
        run = engine.runs["r"]
        assert run.step == last + len(live), number
        assert run.judged.last["gen"] == (run.attempts.current, run.step), number
        assert run.attempts.current <= 2 * count, number
        assert not run.astray, number
