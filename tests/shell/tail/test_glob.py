"""Patterns: what they name, which links they follow, and where a search ends."""

from __future__ import annotations

import glob
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.shell import _discover
from verlwatch.shell._discover import discover
from verlwatch.shell._glob import Search


def found(root: Path, pattern: str) -> list[str]:
    search = Search()
    paths = search.paths(f"{root}/{pattern}")
    assert not search.cut_short
    assert len(set(paths)) == len(paths)
    return [path.removeprefix(f"{root}/") for path in paths]


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.log", "**/*.log", "**", "**/", "a/**", "*/*.log", "a*/b/?.log", "[!b]*/**/*.log", "**/b/*.log", "**/b/**"),
        *("**/x.log", "a/../a/*.log", "a/**/b/**/x.log", ".*", ".h/*", "**/.h/*", "nothing/*", "*/nothing", "[[]z]/*"),
        *("a//*.log", "**.log", "x.log/*", "**/**/x.log"),
    ],
)
def test_without_links_a_pattern_names_what_it_names_to_a_shell(tmp_path: Path, pattern: str) -> None:
    touch(tmp_path, "x.log", "y.txt", "a/x.log", "a/b/x.log", "a/b/c/b/y.log", "b/x.log", ".h/x.log", "[z]/x.log")
    touch(tmp_path, "a/.h/x.log", "a/caf\udce9.log", "a/\n.log")
    (tmp_path / "empty").mkdir()
    shell = {path.rstrip("/") for path in glob.glob(f"{tmp_path}/{pattern}", recursive=True)}  # noqa: PTH207  # absolute
    expected = {os.path.normpath(path) for path in shell if Path(path).is_file()}
    mine = Search().paths(f"{tmp_path}/{pattern}")
    assert mine == sorted(set(mine))
    assert {os.path.normpath(path) for path in mine if Path(path).is_file()} == expected


def test_two_stars_descend_into_no_linked_directory(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    touch(inside, "run/train.log")
    touch(outside, "other.log", "deep/other.log")
    (inside / "run" / "up").symlink_to(inside)
    (inside / "run" / "here").symlink_to(".")
    (inside / "out").symlink_to(outside)
    (inside / "self").symlink_to("self")
    (inside / "linked.log").symlink_to(outside / "other.log")  # a link that is itself what was looked for is found
    assert found(inside, "**/*.log") == ["linked.log", "run/train.log"]


def test_a_link_that_has_a_part_of_the_pattern_to_itself_is_followed(tmp_path: Path) -> None:
    touch(tmp_path, "session_1/logs/a/train.log", "session_2/logs/a/train.log")
    (tmp_path / "latest").symlink_to("session_2")
    (tmp_path / "session_1" / "up").symlink_to(tmp_path)
    expected = ["latest/logs/a/train.log"]
    assert found(tmp_path, "latest/logs/*/*.log") == found(tmp_path, "latest/**/*.log") == expected
    assert found(tmp_path, "lat*/logs/a/train.log") == found(tmp_path, "lat*/**/train.log") == expected
    assert found(tmp_path, "**/latest/**/*.log") == expected


@pytest.mark.parametrize("seed", range(20))
def test_links_to_anywhere_do_not_make_a_search_longer(tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    folders = [tmp_path]
    for number in range(15):
        folders.append(rnd.choice(folders) / f"d{number}")
        touch(folders[-1], "x.log")
    expected = found(tmp_path, "**/*.log")
    for number in range(15):
        (rnd.choice(folders) / f"l{number}").symlink_to(rnd.choice(folders))
    search = Search(directories=len(folders))
    assert [path.removeprefix(f"{tmp_path}/") for path in search.paths(f"{tmp_path}/**/*.log")] == expected
    assert (len(expected), search.cut_short) == (15, False)


def test_a_search_ends_at_its_bound_of_directories_and_what_is_near_the_top_is_found(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{a}/{b}/x.log" for a in "abc" for b in "abc"), *(f"{a}/x.log" for a in "abc"))
    search = Search(directories=13)
    assert (len(search.paths(f"{tmp_path}/**/x.log")), search.cut_short) == (12, False)
    search = Search(directories=4)
    assert search.paths(f"{tmp_path}/**/*.log") == [f"{tmp_path}/{a}/x.log" for a in "abc"]
    assert search.cut_short


def test_a_search_ends_at_its_bound_of_paths(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{name}.log" for name in "abcde"), *(f"{name}.txt" for name in "abcde"), "z/x/y.log")
    search = Search(paths=5)
    assert (len(search.paths(f"{tmp_path}/*.log")), search.cut_short) == (5, False)
    search = Search(paths=4)
    assert (len(search.paths(f"{tmp_path}/*.log")), search.cut_short) == (4, True)
    search = Search(paths=2)
    assert search.paths(f"{tmp_path}/**/y.log") == []
    assert search.cut_short


async def test_a_search_that_met_its_bound_is_told_and_the_others_go_on(
    drive: Callable[..., Driver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_discover, "Search", lambda: Search(directories=2))
    touch(tmp_path, "wide/a/x.log", "wide/b/x.log")
    (tmp_path / "narrow").mkdir()
    append(tmp_path / "narrow" / "train.log", numbered(0, 3))
    wide = f"{tmp_path}/wide/**/*.log"
    assert discover({"r": (wide,)}, (), 10).cut_short == [wide]
    driver = drive(wide, tmp_path / "narrow" / "*.log")
    await driver.settle(1)
    assert numbers(driver.lines) == [0, 1, 2]
    (notice,) = driver.tail.notices
    assert notice == (
        f"{wide} is too wide: its search ended at 10000 directories or 50000 paths and may have missed logs; begin it "
        "with the folder that holds them"
    )
