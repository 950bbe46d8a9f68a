"""Which source is looked at when, and what a look notices."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.shell.tail.driver import append, numbered
from verlwatch.shell import _rhythm
from verlwatch.shell._folders import Folders
from verlwatch.shell._generation import Known
from verlwatch.shell._rhythm import Rhythm
from verlwatch.shell._source import Source

HOUR = 3600.0


class Drum:
    """A rhythm and its sources, polled as the tail does; time is a number."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.rhythm = Rhythm(0.1)
        self.known = Known()
        self.sources: dict[str, Source] = {}

    def add(self, path: Path, *, age: float = 0.0, awaited: bool = False) -> None:
        """A file that was last modified ``age`` seconds ago."""
        append(path, numbered(0, 1))
        os.utime(path, (self.now - age, self.now - age))
        self.sources[path.name] = Source(str(path), "run", self.known, awaited=awaited)
        self.rhythm.wake(self.sources[path.name], self.now)

    def beat(self, seconds: float = 0.0) -> list[str]:
        """The sources that are polled after so long, of those that are looked at in between by their own time."""
        self.now += seconds
        due = self.rhythm.due(self.now)
        for source in due:
            source.poll(self.now, 1 << 20)
            self.rhythm.polled(source, self.now)
        return [Path(source.path).name for source in due]

    def rest(self, seconds: float) -> list[str]:
        """The same for every time at which something is due."""
        polled, until = [], self.now + seconds
        while self.rhythm.next_at() <= until:
            polled += self.beat(max(0.0, self.rhythm.next_at() - self.now))
        self.now = until
        return polled

    def delay(self, path: Path) -> float:
        """Seconds from a line written now to the poll that reads it."""
        append(path, numbered(1, 1))
        begun = self.now
        while path.name not in self.beat(max(0.0, self.rhythm.next_at() - self.now)):
            assert self.now < begun + 60
        return self.now - begun


@pytest.fixture
def drum() -> Iterator[Drum]:
    drum = Drum()
    yield drum
    for source in drum.sources.values():
        source.close()


def test_files_that_do_not_change_are_never_polled(drum: Drum, tmp_path: Path) -> None:
    for number in range(20):
        drum.add(tmp_path / f"{number}.log", age=number * HOUR)
    assert len(drum.beat()) == 20
    assert drum.rest(600) == []


def test_a_file_is_noticed_within_a_tenth_of_a_second_if_it_changed_within_six_hours_and_else_within_one(
    drum: Drum, tmp_path: Path
) -> None:
    drum.add(tmp_path / "live.log", age=5 * HOUR)
    drum.add(tmp_path / "ended.log", age=7 * HOUR)
    drum.rest(10)
    assert drum.delay(tmp_path / "live.log") <= 0.1001
    drum.rest(10.02)
    assert 0.1 < drum.delay(tmp_path / "ended.log") <= 1.001
    drum.rest(5 * HOUR)
    assert drum.delay(tmp_path / "ended.log") <= 0.1001, "it grows now, however rarely"


def test_a_file_seen_growing_comes_before_those_that_were_modified_later(
    drum: Drum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rhythm, "FAST_FILES", 3)
    drum.add(tmp_path / "sparse.log", age=2 * HOUR)
    for number in range(10):
        drum.add(tmp_path / f"{number}.log")
    drum.rest(5)
    drum.delay(tmp_path / "sparse.log")
    for _ in range(3):
        drum.rest(HOUR)
        assert drum.delay(tmp_path / "sparse.log") <= 0.1001


def test_all_that_grew_lately_are_looked_at_fast_and_of_the_others_a_number(
    drum: Drum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rhythm, "FAST_FILES", 3)
    paths = [tmp_path / f"{number}.log" for number in range(10)]
    for path in paths:
        drum.add(path)
    drum.rest(5)
    for path in paths:
        append(path, numbered(1, 1))
    assert len(drum.rest(2)) == 10
    drum.rest(600)
    assert max(drum.delay(path) for path in paths) <= 0.1001
    drum.rest(HOUR)
    delays = [drum.delay(path) for path in paths[:5]]  # each that is read grows again
    assert sum(delay > 0.1001 for delay in delays) >= 2


def test_a_file_that_appears_is_fast_from_its_first_line_on(
    drum: Drum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rhythm, "FAST_FILES", 3)
    for number in range(10):
        drum.add(tmp_path / f"{number}.log")
    drum.rest(5.5)
    drum.add(tmp_path / "new.log", awaited=True)
    drum.beat()
    assert drum.delay(tmp_path / "new.log") <= 0.1001


def test_a_file_rewritten_in_its_length_is_noticed_by_its_time(drum: Drum, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    drum.add(log)
    drum.rest(5)
    with log.open("r+b") as file:
        file.write(numbered(7, 1))
    assert drum.rest(0.2)[:1] == ["train.log"]
    assert drum.sources["train.log"].view().generation == 1


@pytest.mark.parametrize(("told", "at_most"), [(False, 0.2), (True, 3.0)])
def test_another_file_at_the_path_is_noticed_at_once_or_in_turn_where_somebody_tells(
    drum: Drum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, told: bool, at_most: float
) -> None:
    monkeypatch.setattr(_rhythm, "PATHS", 4)
    drum.rhythm.told = told
    paths = [tmp_path / f"{number}.log" for number in range(8)]
    for path in paths:
        drum.add(path)
    drum.rest(5)
    for path in paths:
        path.rename(path.with_suffix(".old"))
        path.write_bytes(b"")
    assert {*drum.rest(at_most)} == {path.name for path in paths}


def test_where_a_change_of_name_is_told_all_paths_are_looked_at(drum: Drum, tmp_path: Path) -> None:
    drum.rhythm.told = True
    drum.add(tmp_path / "train.log")
    drum.rest(5)
    (tmp_path / "train.log").rename(tmp_path / "train.log.1")
    drum.rhythm.look_at_paths(drum.now)
    assert drum.beat() == ["train.log"]


def test_a_file_that_is_closed_is_looked_at_no_longer(drum: Drum, tmp_path: Path) -> None:
    drum.add(tmp_path / "train.log")
    drum.rest(5)
    source = drum.sources["train.log"]
    source.close()
    drum.rhythm.drop(source)
    assert drum.rhythm.next_at() == float("inf")
    assert drum.beat(10) == []


def test_a_directory_counts_as_changed_when_a_name_appears_or_moves_or_the_directory_itself_is_another(
    tmp_path: Path,
) -> None:
    folder, link, later = tmp_path / "logs", tmp_path / "latest", 1e10
    folder.mkdir()
    link.symlink_to(folder)
    other = tmp_path / "other"
    other.mkdir()
    folders = Folders()
    changes: tuple[Callable[[], object], ...] = (
        (folder / "a.log").touch,
        partial((folder / "a.log").rename, folder / "b.log"),
        partial(folder.chmod, 0o700),
        link.unlink,
        partial(link.symlink_to, other),
        (tmp_path / "missing").mkdir,
    )
    for change in changes:
        folders.searched([str(folder), str(link), str(tmp_path / "missing")], later)
        assert not folders.changed
        time.sleep(0.02)  # more than one step of the file system's clock
        change()
        assert folders.changed


def test_a_directory_that_has_just_changed_is_searched_again(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    folders = Folders()
    folders.searched([str(tmp_path)], tmp_path.stat().st_ctime + 1)
    assert folders.changed, "a second name within one step of the file system's clock would not show"
    folders.searched([str(tmp_path)], tmp_path.stat().st_ctime + 3)
    assert not folders.changed
