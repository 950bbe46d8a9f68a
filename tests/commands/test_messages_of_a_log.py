"""`replay --notify-dry-run` and `test-notify --route`: what would be told, and to whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.training import Training
from verlwatch.cli import main

ROUTES = """
runs: [{name: r, logs: [/x]}]
receivers: [{name: pager, type: webhook, url: 'https://p'}, {name: team, type: webhook, url: 'https://t'}]
quiet_hours: ['00:00-24:00']
routes:
  - {severity: critical, run: 'prod-*', receivers: [pager, team]}
  - {run: 'scratch-*', receivers: []}
  - {rule: 'phase_*', receivers: [team]}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_text("".join(Training().steps(1, 60).steps(61, 80, gen=80.0).lines))
    return file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "verlwatch.yaml"
    file.write_text(ROUTES)
    return file


def test_the_messages_of_a_log_are_printed_as_they_would_be_read(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--notify-dry-run", str(log)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("after ")
    assert "train: gen is ×" in said
    assert "verlwatch silence add --run=train --phase=gen" in said
    assert "1970" not in said
    assert "nobody" not in said


def test_who_would_get_them_is_said_whatever_the_time_of_day(
    log: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--notify-dry-run", "--config", str(config), "--run", "scratch-1", str(log)]) == 0
    assert "nothing found" in capsys.readouterr().out
    assert main(["replay", "--notify-dry-run", "--config", str(config), str(log)]) == 0
    assert "of training, to team\n" in capsys.readouterr().out


def test_each_receiver_s_message_is_in_its_language(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "two.yaml"
    config.write_text(
        "receivers: [{name: a, type: webhook, url: 'https://a', language: zh}, {name: b, type: webhook, url: 'https://b'}]"
    )
    assert main(["replay", "--notify-dry-run", "--config", str(config), str(log)]) == 0
    chinese, english = capsys.readouterr().out.split("\n\n")[:2]
    assert ", to a\n" in chinese
    assert "起始步" in chinese
    assert ", to b\n" in english
    assert "Since step" in english


def test_a_log_without_incidents_causes_no_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "calm.log").write_text("".join(Training().steps(1, 60).lines))
    assert main(["replay", "--notify-dry-run", str(tmp_path / "calm.log")]) == 0
    assert capsys.readouterr().out.startswith("nothing found in 60 steps")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("critical", "phase_shift", "prod-7b"), "pager, team: routes[0] takes it"),
        (("warning", "phase_shift", "prod-7b"), "team: routes[2] takes it"),
        (("critical", "phase_shift", "scratch-1"), "nobody: routes[1] takes it"),
        (("warning", "agent_lost", "agent n1"), "pager, team: no route takes it, so all are told"),
    ],
)
def test_where_an_incident_would_go(
    config: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], said: str
) -> None:
    assert main(["test-notify", "--config", str(config), "--route", *asked]) == 0
    assert capsys.readouterr().out == f"{said}\n"


def test_a_severity_that_there_is_not_is_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-notify", "--config", str(config), "--route", "awful", "phase_shift", "r"]) == 2
    assert "awful is no severity; give one of info, warning, critical" in capsys.readouterr().err
