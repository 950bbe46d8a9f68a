"""SIGKILL of a real process at any moment, whatever is done to the log meanwhile: every line is committed once."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.conftest import SOAK
from tests.shell.tail.driver import append, numbered
from verlwatch.shell import _generation

ROOT = Path(__file__).parents[3]
LIMIT_S = 120.0


class Followed:
    """A log, and a process that follows it and dies."""

    def __init__(self, folder: Path, linger_s: float) -> None:
        self.log = folder / "train.log"
        self.state = folder / "state"
        self.linger_s = linger_s
        self.written = 0
        self.kills = 0
        self._follower: subprocess.Popen[bytes] | None = None

    def follow(self) -> None:
        """Starts the process, and returns once it follows."""
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "tests.shell.tail.follower",
            self.state,
            self.log,
            str(self.linger_s),
        ]
        self._follower = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._follower.stdout is not None
        assert self._follower.stdout.readline() == b"following\n"

    def kill(self) -> None:
        assert self._follower is not None
        assert self._follower.poll() is None, "it ended by itself"
        self._follower.kill()
        self._follower.communicate()
        self.kills += 1

    def write(self, count: int, path: Path | None = None, *, head: bool = False) -> None:
        append(path or self.log, numbered(self.written, count, head=head))
        self.written += count

    def shift(self) -> Path:
        """Makes room for the next rotated file."""
        for number in range(99, 0, -1):
            old = self.log.with_name(f"train.log.{number}")
            if old.exists():
                old.rename(self.log.with_name(f"train.log.{number + 1}"))
        return self.log.with_name("train.log.1")

    def rename(self) -> Path:
        """Rotates the log, and begins the next one."""
        old = self.log.rename(self.shift())
        self.write(1, head=True)
        return old

    def committed(self) -> list[int]:
        """The numbers of all lines, in the order of their commits."""
        with closing(sqlite3.connect(self.state / "state.db")) as connection:
            rows = connection.execute("SELECT data FROM transition ORDER BY id").fetchall()
        return [int(number) for (data,) in rows for number in json.loads(data)["incident"].split()]

    def until(self, holds: Callable[[list[int]], bool]) -> None:
        """Waits for commits."""
        ends = time.monotonic() + LIMIT_S
        while not holds(self.committed()) and time.monotonic() < ends:
            time.sleep(0.05)

    def check(self) -> None:
        """Every line was committed once."""
        self.until(lambda numbers: len(numbers) >= self.written)
        numbers = Counter(self.committed())
        assert sorted(set(range(self.written)) - set(numbers)) == [], "lost"
        assert [number for number, times in numbers.items() if times > 1] == [], "twice"
        assert set(numbers) == set(range(self.written))


@contextmanager
def followed(folder: Path, linger_s: float) -> Iterator[Followed]:
    world = Followed(folder, linger_s)
    world.write(10, head=True)
    world.follow()
    world.until(lambda numbers: len(numbers) == 10)
    try:
        yield world
        world.check()
    finally:
        world.kill()


def test_kills_with_three_renames_under_load_lose_no_line_and_repeat_none(tmp_path: Path) -> None:
    kills, batches, of = (20, 640, 100) if SOAK else (5, 40, 100)
    seed = random.Random(64010)
    deaths = set(seed.sample(range(batches), kills))
    renames = set(seed.sample(range(batches), 3))
    with followed(tmp_path, _generation.LINGER_S if SOAK else 0.3) as world:
        for batch in range(batches):
            if batch in renames:
                old = world.rename()  # which writes the first line of the new file
                world.write(of - 1, old if seed.random() < 0.5 else None)
            else:
                world.write(of)
            time.sleep(seed.uniform(0.0, 0.03))
            if batch in deaths:
                world.kill()
                world.follow()
        assert world.written == 10 + batches * of
        assert world.kills == kills


def test_kills_over_random_histories_lose_no_line_and_repeat_none(tmp_path: Path) -> None:
    kills = 200 if SOAK else 5
    seed = random.Random(200)
    with followed(tmp_path, 0.5 if SOAK else 0.3) as world:
        while world.kills < kills:
            for _ in range(seed.randint(1, 12)):
                act(world, seed)
                time.sleep(seed.choice((0.0, 0.0, 0.01, 0.05, 0.2)))
            world.kill()
            for _ in range(seed.choice((0, 0, 1, 3))):
                act(world, seed, is_down=True)
            world.follow()


def act(world: Followed, seed: random.Random, *, is_down: bool = False) -> None:
    """Something that happens to a log, and that nobody needs to lose lines over."""
    (what,) = seed.choices(("write", "half", "rename", "late", "copytruncate", "replace"), (8, 3, 1, 1, 1, 1))
    if what == "write":
        world.write(seed.choice((1, 5, 50, 3000)))
    elif what == "half":
        line = numbered(world.written, 1)
        cut = seed.randrange(1, len(line))
        append(world.log, line[:cut])
        time.sleep(0.0 if is_down else seed.choice((0.0, 0.03)))
        append(world.log, line[cut:])
        world.written += 1
    elif what == "rename":
        world.rename()
    elif what == "late":
        world.write(3, world.rename())
    elif what == "replace":
        fresh = world.log.with_name(".fresh")
        shutil.copyfile(world.log, fresh)
        fresh.replace(world.log)
    elif not is_down:  # of what is copied a line must have been read, else nothing proves what the copy is
        last = world.written
        world.write(1)
        world.until(lambda numbers: last in numbers)
        world.write(20)
        shutil.copyfile(world.log, world.shift())
        world.log.write_bytes(b"")
        world.write(1, head=True)
