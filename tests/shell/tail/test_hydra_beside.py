"""Hydra's configuration beside a log belongs to the log's run, and makes none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append
from verlwatch.shell._discover import discover
from verlwatch.shell.tail import Following

Drive = Callable[..., Driver]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "qwen"
    (folder / ".hydra").mkdir(parents=True)
    append(folder / ".hydra" / "config.yaml", b"trainer:\n")
    append(folder / "main_ppo.log", b"step:1\n")
    return folder


def found(*patterns: Path, entry: str = "run", limit: int = 100, hydra: bool = True) -> dict[str, str]:
    runs = discover({entry: tuple(map(str, patterns))}, (), limit, hydra=hydra).runs
    return {"/".join(Path(path).parts[-2:]): run for path, run in runs.items()}


def test_it_belongs_to_the_run_whose_logs_lie_there(outputs: Path) -> None:
    wanted = {"qwen/main_ppo.log": "qwen/main_ppo", ".hydra/config.yaml": "qwen/main_ppo"}
    assert found(outputs / "*.log", entry="{folder}/{file}") == wanted
    assert found(outputs / "main_ppo.log", entry="{folder}/{file}") == wanted


def test_it_is_nobodys_where_several_runs_log_into_one_folder(outputs: Path) -> None:
    append(outputs / "other.log", b"step:1\n")
    assert set(found(outputs / "*.log", entry="{file}").values()) == {"main_ppo", "other"}
    assert len(found(outputs / "*.log", entry="{folder}")) == 3


def test_it_is_not_looked_for_where_that_is_switched_off(outputs: Path) -> None:
    assert len(found(outputs / "*.log", hydra=False)) == 1


def test_it_is_no_log_by_itself(outputs: Path) -> None:
    (outputs / "main_ppo.log").unlink()
    assert found(outputs / "*.log") == {}
    assert len(found(outputs / "main_ppo.log")) == 1, "a log that is waited for has nothing beside it yet"


def test_it_takes_no_logs_place(outputs: Path) -> None:
    assert list(found(outputs / "*.log", limit=1)) == ["qwen/main_ppo.log"]


async def test_it_is_read_once_it_is_there_wherever_the_run_starts(outputs: Path, drive: Drive) -> None:
    (outputs / ".hydra" / "config.yaml").unlink()
    driver = drive(outputs / "*.log")
    driver.starts["run"] = "end"
    assert await driver.settle(2) == []
    append(outputs / ".hydra" / "config.yaml", b"data:\n")
    assert await driver.settle(3) == [b"data:"]
    assert {chunk.run for chunk in driver.chunks} == {"run"}


async def test_it_is_let_go_when_that_is_switched_off(outputs: Path, drive: Drive) -> None:
    driver = drive(outputs / "*.log")
    await driver.settle(1)
    assert len(driver.tail.sources()) == 2
    driver.tail.reload(Following(driver.patterns, hydra=False))
    await driver.settle(1)
    assert [Path(view.source).name for view in driver.tail.sources()] == ["main_ppo.log"]
