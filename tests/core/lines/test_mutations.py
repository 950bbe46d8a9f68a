"""The corpus, damaged: nothing raises, nothing takes long, and no number is read that does not stand in the bytes."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SOAK
from verlwatch.core.lines import Reader
from verlwatch.core.lines._envelope import messages
from verlwatch.core.lines._shipping import unshipped
from verlwatch.core.types import Event, Record, Samples

CORPUS = Path(__file__).parents[2] / "corpus"
LINES = 1_000_000 if SOAK else 20_000
BATCH = 200
STORM = b"\x1b[36m\x1b[0m\x1b[38;5;214m\x1b[K^[[1m"
NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
CLOCK = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-9]{2})")
UNITS = (1.0, 1e-3, 1e-6, 1e-9, 60.0, 3600.0, 1e3, 1024.0, 1 / 1024, 1024.0**-2, 1024.0**-3, 1e-6 / 1.024, 100.0, 0.01)
COUNTED = {"gpus", "rows", "top", "killed", "repeated", "again", "job"}
"""What is told by counting, not by a number in the line; and Slurm's job, which its step follows behind a dot."""


def corpus() -> list[bytes]:
    return [line for path in sorted(CORPUS.glob("*.log")) for line in path.read_bytes().split(b"\n") if line]


def damaged(rnd: random.Random, lines: list[bytes]) -> bytes:
    line = bytearray(rnd.choice(lines))
    for _ in range(rnd.choice((0, 1, 1, 2, 3))):
        at, to = sorted((rnd.randint(0, len(line)), rnd.randint(0, len(line))))
        match rnd.randrange(8):
            case 0 if line:
                line[at - 1] ^= 1 << rnd.randrange(8)
            case 1:
                del line[at:to]
            case 2:
                del line[at:]
            case 3:
                del line[:at]
            case 4:
                line[at:at] = rnd.choice(lines)
            case 5:
                line[at:at] = STORM[: rnd.randint(1, len(STORM))]
            case 6:
                line[at:at] = rnd.choice(
                    (b"\r", b"\0", b" - ", b":", b"(T pid=1) ", b"%|##|", b'"', b"\xff", b"9" * 30)
                )
            case _:
                line[at:at] = line[at:to] * rnd.choice((1, 2, 50))
    if rnd.random() < 1e-4:
        line *= 1 + (1 << 20) // (len(line) + 1)
    return bytes(line).replace(b"\n", b" ") + b"\n"


def batches(seed: int, lines: int) -> Iterator[bytes]:
    rnd = random.Random(seed)
    whole = corpus()
    for _ in range(0, lines, BATCH):
        at = rnd.randrange(len(whole))
        run = [line + b"\n" for line in whole[at : at + 20]]  # some as they are, so that blocks find their rows
        yield b"".join((*(damaged(rnd, whole) for _ in range(BATCH - 20)), *run))


def texts(data: bytes) -> list[str]:
    """Every physical line as it stands, what each writer said, written as one, and the seams of cut step lines."""
    lines = [unshipped(line.decode(errors="replace")).text for line in data.split(b"\n")]
    said: defaultdict[object, list[str]] = defaultdict(list)
    for line in lines:
        for message in messages(line):
            said[message.writer].append(message.text)
    seams = [
        part[-40:] + rest[:40]
        for parts in said.values()
        for number, part in enumerate(parts)
        if part.startswith("step:")
        for rest in parts[number + 1 : number + 65]
    ]
    return [*lines, *("".join(parts) for parts in said.values()), *seams]


def standing(data: bytes) -> set[float]:
    """Every number in the text, also as its clocks tell it."""
    found = {0.0, 1.0}  # False and True
    for text in texts(data):
        for at in range(2):  # a sign may be one of the number, or a dash before it
            found.update(float(number[at if number[0] in "+-" else 0 :]) for number in NUMBER.findall(text))
        found.update(60.0 * (60 * int(h or 0) + int(m)) + int(s) for h, m, s in CLOCK.findall(text) if len(m + s) < 18)
    return found


def numbers(record: Record) -> Iterator[float]:
    if isinstance(record, Samples):
        yield float(record.step)
        yield from record.values.values()
    else:
        yield from (
            float(value)
            for key, value in record.attributes.items()
            if isinstance(value, int | float) and key not in COUNTED
        )


def stands(value: float, found: set[float], rounded: list[float]) -> bool:
    if not math.isfinite(value) or value in found:
        return True
    return any(
        abs(number * unit - value) <= 1e-9 * abs(value) or (number and abs(unit / number - value) <= 1e-9 * abs(value))
        for unit in UNITS
        for number in rounded
    )


@pytest.mark.parametrize("seed", [20261129])
def test_damaged_lines_neither_raise_nor_make_up_numbers(seed: int) -> None:
    read = 0
    for number, data in enumerate(batches(seed, LINES)):
        reader = Reader("run.log", line_limit=1 << 18)
        records = reader.feed(data, 0.0) + reader.finish(0.0)
        assert reader.counts.broken == 0, reader.counts.sample
        read += len(records)
        if number % (1 if not SOAK else 10):
            continue
        found = standing(data)
        listed = list(found)
        for record in records:
            for value in numbers(record):
                assert stands(value, found, listed), (value, record)
    assert read > LINES / 20


def test_a_number_with_more_digits_is_another_number_or_none() -> None:
    """A pattern that takes so many digits at most must not take the first of more."""
    for path in sorted(CORPUS.glob("*.log")):
        lines = path.read_bytes().split(b"\n")
        for at, line in enumerate(lines):
            numbers_at = list(re.finditer(rb"[0-9]+", line[:6000]))
            for match in numbers_at if SOAK else numbers_at[:: 1 + len(numbers_at) // 4]:
                longer = line[: match.end()] + b"9" * 30 + line[match.end() :]
                data = b"\n".join([longer, *lines[at + 1 : at + 12]]) + b"\n"
                reader = Reader("run.log")
                found = standing(data)
                for record in reader.feed(data, 0.0) + reader.finish(0.0):
                    for value in numbers(record):
                        assert stands(value, found, list(found)), (value, record)


def test_every_kind_still_reads_some_of_the_damaged_lines() -> None:
    kinds = {
        record.origin.kind
        for data in batches(1, 10_000)
        for record in Reader("run.log").feed(data, 0.0)
        if isinstance(record, Samples | Event)
    }
    told = {
        record.origin.kind for data in [b"\n".join(corpus())] for record in Reader("run.log").feed(data + b"\n", 0.0)
    }
    assert told - kinds == set()
