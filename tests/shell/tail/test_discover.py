"""Which files the entries of a configuration name, and which run each belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from verlwatch.shell._discover import discover
from verlwatch.shell.run_names import NAME_LIMIT, may_be_of, run_of, unknown_part

Drive = Callable[..., Driver]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Three experiments of two projects as verl's file logger lays them out."""
    for project, experiment in (("math", "ppo"), ("math", "grpo"), ("code", "ppo")):
        (tmp_path / project).mkdir(exist_ok=True)
        append(tmp_path / project / f"{experiment}.jsonl", b'{"step":1,"data":{}}\n')
    return tmp_path


def runs(entry: str, *patterns: Path) -> dict[str, str]:
    """File -> run, both short."""
    found = discover({entry: tuple(str(pattern) for pattern in patterns)}, (), 100)
    assert set(found.entries.values()) <= {entry}
    return {"/".join(Path(path).parts[-2:]): run for path, run in found.runs.items()}


def test_without_braces_all_logs_of_an_entry_are_one_run(logs: Path) -> None:
    assert set(runs("all", logs / "*" / "*.jsonl").values()) == {"all"}


def test_each_experiment_below_a_root_is_a_run_called_project_and_experiment(logs: Path) -> None:
    assert runs("{folder}/{file}", logs / "*" / "*.jsonl") == {
        "code/ppo.jsonl": "code/ppo",
        "math/grpo.jsonl": "math/grpo",
        "math/ppo.jsonl": "math/ppo",
    }


def test_console_log_and_jsonl_of_the_same_name_are_one_run(logs: Path) -> None:
    append(logs / "math" / "ppo.log", b"step:1\n")
    named = runs("{folder}/{file}", logs / "**" / "*.jsonl", logs / "**" / "*.log")
    assert named["math/ppo.log"] == named["math/ppo.jsonl"] == "math/ppo"


def test_all_logs_in_one_folder_can_be_one_run(logs: Path) -> None:
    assert set(runs("on {folder}", logs / "*" / "*").values()) == {"on math", "on code"}


def test_where_names_make_runs_the_logs_written_last_come_first(logs: Path) -> None:
    for age, name in enumerate(("math/grpo", "code/ppo", "math/ppo")):
        os.utime(logs / f"{name}.jsonl", (1000 - age, 1000 - age))
    assert [*runs("{folder}/{file}", logs / "*" / "*")] == ["math/grpo.jsonl", "code/ppo.jsonl", "math/ppo.jsonl"]


def test_the_limit_leaves_out_the_oldest_experiments(logs: Path) -> None:
    os.utime(logs / "math" / "ppo.jsonl", (1, 1))
    found = discover({"{file} in {folder}": (str(logs / "*" / "*"),)}, (), 2)
    assert sorted(found.runs.values()) == ["grpo in math", "ppo in code"]
    assert found.left_out == 1


@pytest.mark.parametrize(
    ("name", "path", "run"),
    [
        ("plain", "/a/b/c.jsonl", "plain"),
        ("{folder}", "/a/b/c.jsonl", "b"),
        ("{file}", "/c.tar.log", "c.tar"),
        ("{session}", "/ray/session_2026-01-02_3_4/logs/worker-a-01000000-7.out", "session_2026-01-02_3_4"),
        ("{session}", "/a/b/c.log", "b"),
        ("${folder} {", "/a/b/c.jsonl", "${folder} {"),
        ("{file}", "/a/red\x1b[31m\u202e.log", "red\\x1b[31m\\u202e"),
        ("{file}", "/a/{folder}.log", "{folder}"),
    ],
)
def test_the_run_of_a_log(name: str, path: str, run: str) -> None:
    assert run_of(name, path) == run
    assert may_be_of(name, run)


def test_long_names_keep_their_beginning_and_their_end() -> None:
    long = run_of("{folder}/{file}", f"/{'p' * 90}/{'e' * 90}-seed-17.jsonl")
    assert len(long) == NAME_LIMIT
    assert long.startswith("ppp")
    assert long.endswith("-seed-17")
    assert may_be_of("{folder}/{file}", long)


def test_runs_of_other_entries_are_not_taken_for_ones_own() -> None:
    assert not may_be_of("{folder}/{file}", "my-run")
    assert not may_be_of("my-run", "my-run/x")
    assert not may_be_of("a.{file}", "abc")


@pytest.mark.parametrize(("name", "part"), [("{date}", "date"), ("{}", ""), ("{file}-{x}", "x"), ("{a b} ${x}", None)])
def test_what_stands_for_nothing_is_found(name: str, part: str | None) -> None:
    assert unknown_part(name) == part


async def test_a_new_experiment_in_a_new_folder_becomes_a_run_that_starts_as_its_entry_says(
    drive: Drive, logs: Path
) -> None:
    driver = drive()
    driver.patterns = {"{folder}/{file}": (str(logs / "**" / "*.jsonl"),)}
    driver.starts = {"{folder}/{file}": "end"}
    driver.restart()
    await driver.settle(2)
    assert not any(chunk.data for chunk in driver.chunks)  # what was there is left out
    (logs / "new" / "deep").mkdir(parents=True)
    append(logs / "new" / "deep" / "run.jsonl", numbered(0, 3))
    append(logs / "code" / "ppo.jsonl", numbered(3, 3))
    await driver.settle(2)
    assert {chunk.run for chunk in driver.chunks if chunk.data} == {"deep/run", "code/ppo"}
    assert sorted(numbers(driver.lines)) == [*range(6)]


async def test_files_that_appear_at_any_depth_of_watched_and_new_folders_are_found(
    drive: Drive, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    driver = drive(tmp_path / "**" / "*.log")
    await driver.settle(1)
    places = [tmp_path, tmp_path / "a", tmp_path / "a" / "new", tmp_path / "b" / "c" / "d"]
    for number, folder in enumerate(places):
        folder.mkdir(parents=True, exist_ok=True)
        append(folder / "train.log", numbered(number, 1))
        await driver.settle(2)
        assert sorted(numbers(driver.lines)) == [*range(number + 1)]


def test_where_there_are_too_many_files_one_that_is_written_to_displaces_those_silent_for_days(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"old-{number}.log").write_text("x\n")
        os.utime(tmp_path / f"old-{number}.log", (1e9 + number, 1e9 + number))
    patterns = {"run": (str(tmp_path / "*.log"),)}
    known = set(discover(patterns, (), 4).runs)
    assert len(known) == 4
    new = tmp_path / "a-new.log"
    new.write_text("x\n")
    found = discover(patterns, known, 4)
    assert str(new) in found.runs
    assert found.left_out == 2
    os.utime(new, (1e9 + 3600, 1e9 + 3600))
    assert set(discover(patterns, known, 4).runs) == known, "among files of the same days those stay that are followed"
