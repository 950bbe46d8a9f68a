"""However the bytes are split, and whenever the reader is killed, the records are those of an uninterrupted reading."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SOAK
from verlwatch.core.lines import KINDS, Reader
from verlwatch.core.lines._search import Index
from verlwatch.core.types import Record

SEEDS = 60 if SOAK else 9
LIMIT = 600
FULL = "step:{n} - actor/entropy:0.25{n} - actor/lr:np.float64(1e-06) - timing_s/gen:41.25{n} - timing_s/step:77.5"
ROUNDED = "step:{n} - actor/entropy:0.251 - timing_s/gen:41.250 - timing_s/adv:0.000 - a/b:1.500 - timing_s/step:77.700"
WRITERS = ("", "(TaskRunner pid=1) ", "\x1b[36m(TaskRunner pid=2, ip=10.0.0.7)\x1b[0m ", "(WorkerDict pid=3) ")
BAR = "\rTraining Progress:  33%|███▎      | 1/3 [00:00<00:00,  2.50it/s]"


def lines(rnd: random.Random, *, rests: bool) -> Iterator[str | bytes]:
    """Lines of every sort, without newline; ``rests``: some cut lines find their end."""
    for n in range(rnd.randint(5, 60)):
        writer = rnd.choice(WRITERS)
        line = rnd.choice((FULL, ROUNDED)).format(n=n)
        at = rnd.randint(9, len(line) - 1)
        match rnd.randrange(11):
            case 0 | 1:
                yield writer + line
            case 2 | 3:
                yield writer + line[:at]
                yield from (rnd.choice(WRITERS) + rnd.choice(("noise", "", BAR)) for _ in range(rnd.randint(0, 3)))
                if rests:
                    yield writer + line[at:]
            case 4:
                yield writer + BAR + rnd.choice(("", line, BAR))
            case 5:
                yield from (b"\xff\x00" * rnd.randint(0, 20) for _ in range(rnd.randint(0, 70)))
            case 6:
                yield writer + line + "x" * rnd.randint(0, 2 * LIMIT)
            case 7:
                yield f'{{"step":{n},"data":{{"timing_s/gen":1.5}}}}'
            case 8:
                yield writer + rnd.choice(("Total training steps: 40", "Training from scratch", "step:7", "", "5"))
            case 9:
                yield "y" * rnd.choice((LIMIT - 1, LIMIT, LIMIT + 1, 70_000))
            case _:
                yield from (["noise"] * rnd.randint(0, 70))


def log(seed: int, *, rests: bool) -> bytes:
    rnd = random.Random(seed)
    whole = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines(rnd, rests=rests))
    return whole + rnd.choice((b"", b"\n"))


@dataclass(slots=True)
class Watcher:
    """What a daemon does: feeds, commits records with the cursor, dies, and resumes from the last commit."""

    data: bytes
    rnd: random.Random
    deaths: float
    ticks: bool
    short_of_memory: frozenset[int] = frozenset()
    """Positions at which the half line is let go ..."""
    silent_only: bool = False
    """... if it says nothing."""
    records: list[Record] = field(default_factory=list)
    cursor: tuple[int, int, bytes] = (0, 0, b"")
    now: float = 0.0

    def run(self) -> list[Record]:
        reader = self.resumed()
        while reader.offset < len(self.data):
            self.now += self.rnd.choice((0.0, 0.1, 3.0)) if self.ticks else 0.0
            size = self.rnd.choice((1, 40, 200, 3000, 20_000))
            before = reader.offset
            until = min([before + size, *(at for at in self.short_of_memory if at > before)])
            got = reader.feed(self.data[before:until], self.now)
            if reader.offset in self.short_of_memory and not (self.silent_only and reader.may_say_something):
                got += reader.let_go(self.now)
                assert reader.held == 0 or reader.offset < self.cursor[1]
            assert all(record.origin.end > before for record in got)
            reader = self.committed(reader, got)
            if self.ticks and (wanted := reader.deadline()) is not None and wanted <= self.now:
                reader = self.committed(reader, reader.tick(self.now))
        self.take(reader.finish(self.now))
        return self.records

    def committed(self, reader: Reader, got: list[Record]) -> Reader:
        if self.rnd.random() < self.deaths:
            return self.resumed()
        self.take(got)
        reread_from, applied_to, _ = self.cursor
        assert reader.reread_from >= reread_from
        assert reader.offset - reader.reread_from < (1 << 16) + 64 * LIMIT + 10_000
        self.cursor = (reader.reread_from, max(applied_to, reader.offset), reader.mark)
        return self.resumed() if self.rnd.random() < self.deaths else reader

    def take(self, got: list[Record]) -> None:
        ends = [record.origin.end for record in got]
        assert ends == sorted(ends)
        self.records += [record for record in got if record.origin.end > self.cursor[1]]

    def resumed(self) -> Reader:
        offset, applied_to, mark = self.cursor
        assert mark == self.data[max(0, offset - 64) : offset]
        return Reader("run.log", offset=offset, mark=mark, line_limit=LIMIT, applied_to=applied_to)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_records_do_not_depend_on_pieces_or_deaths(
    seed: int, read: Callable[..., list[Record]], plain: Callable[[Record], dict[str, Any]]
) -> None:
    data = log(seed, rests=True)
    whole = [(record.origin.end, plain(record)) for record in read(data, line_limit=LIMIT)]
    for deaths in (0.0, 0.02, 0.1):
        records = Watcher(data, random.Random(seed), deaths, ticks=False).run()
        assert [(record.origin.end, plain(record)) for record in records] == whole


@pytest.mark.parametrize("seed", range(SEEDS))
def test_time_loses_and_doubles_nothing(
    seed: int, read: Callable[..., list[Record]], plain: Callable[[Record], dict[str, Any]]
) -> None:
    """Lines whose end never comes are told once, whether time or bytes close them."""
    data = log(seed, rests=False)
    whole = Counter(repr(plain(record)) for record in read(data, line_limit=LIMIT))
    for deaths in (0.0, 0.02, 0.1):
        records = Watcher(data, random.Random(seed), deaths, ticks=True).run()
        assert Counter(repr(plain(record)) for record in records) == whole


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_death_changes_nothing_where_memory_is_short(seed: int, plain: Callable[[Record], dict[str, Any]]) -> None:
    data = log(seed, rests=True)
    short = frozenset(random.Random(seed).sample(range(1, len(data)), 12))
    first, *others = (
        Watcher(data, random.Random(n), deaths, ticks=False, short_of_memory=short).run()
        for n, deaths in enumerate((0.0, 0.0, 0.02, 0.05))
    )
    told = [(record.origin.end, plain(record)) for record in first]
    assert [[(record.origin.end, plain(record)) for record in other] for other in others] == [told] * 3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_letting_lines_go_that_say_nothing_loses_and_doubles_nothing(
    seed: int, read: Callable[..., list[Record]], plain: Callable[[Record], dict[str, Any]]
) -> None:
    data = log(seed, rests=False)
    whole = Counter(repr(plain(record)) for record in read(data, line_limit=LIMIT))
    short = frozenset(
        line.start() + random.Random(seed).randint(1, len(line[0]))
        for line in re.finditer(rb"[^\n]{60,}", data)
        if not any(literal in line[0] for literal in Index(KINDS).literals)
    )
    for deaths in (0.0, 0.02, 0.1):
        watcher = Watcher(data, random.Random(seed), deaths, ticks=False, short_of_memory=short, silent_only=True)
        assert Counter(repr(plain(record)) for record in watcher.run()) == whole


def test_the_made_up_logs_hold_what_they_should(read: Callable[..., list[Record]]) -> None:
    kinds = Counter(r.origin.kind for seed in range(60) for r in read(log(seed, rests=True), line_limit=LIMIT))
    assert kinds.keys() >= {"step_metrics", "file_logger", "progress", "plan", "resume"}
    assert min(kinds[kind] for kind in ("step_metrics", "file_logger", "progress", "plan", "resume")) > 10


CORPUS = Path(__file__).parents[2] / "corpus"


def blocks(seed: int) -> bytes:
    """Excerpts of all kinds, each of a writer of its own, their lines mixed as those of several processes are."""
    rnd = random.Random(seed)
    names = rnd.sample(sorted(CORPUS.glob("*.log")), 6)
    logs = {pid: path.read_bytes().split(b"\n") for pid, path in enumerate(names, 100)}
    mixed = []
    while logs:
        pid = rnd.choice(list(logs))
        lines = logs[pid]
        for _ in range(min(len(lines), rnd.choice((1, 1, 2, 9)))):
            line = lines.pop(0)
            own = re.match(rb"(?:\x1b\[[0-9;]*m)?\(\w+ pid=", line)
            mixed.append(line if own or pid % 2 else b"(WorkerDict pid=%d) " % pid + line)
        if not lines:
            del logs[pid]
    return b"\n".join(mixed)


@pytest.mark.parametrize("seed", range(SEEDS // 3))
def test_blocks_of_all_kinds_are_read_again_after_a_death_at_any_place(
    seed: int, read: Callable[..., list[Record]], plain: Callable[[Record], dict[str, Any]]
) -> None:
    data = blocks(seed)
    whole = [(record.origin.end, plain(record)) for record in read(data)]
    rnd = random.Random(seed)
    for at in rnd.sample(range(len(data)), 12):
        first = Reader("run.log")
        told = first.feed(data[:at], 0.0)
        again = Reader("run.log", 0, first.reread_from, first.mark, applied_to=first.offset, context=first.context)
        later = again.feed(data[first.reread_from :], 0.0) + again.finish(0.0)
        told += [record for record in later if record.origin.end > first.offset]
        assert [(record.origin.end, plain(record)) for record in told] == whole
