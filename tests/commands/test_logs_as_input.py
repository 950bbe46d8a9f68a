"""What commands on whole logs make of files that are not as they should be, of hostile text, and of a configuration."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pytest

from verlwatch.cli import main

HOSTILE = "a\x1b]0;owned\x07\u202eb"


@pytest.fixture
def hostile_log(tmp_path: Path) -> Path:
    log = tmp_path / f"{HOSTILE}.log"
    log.write_text(
        f"Load from checkpoint folder: /c/{HOSTILE}/global_step_3\n"
        f"step:4 - {HOSTILE}/x:1.5 - timing_s/gen:2.5 - timing_s/step:3.5\n"
    )
    return log


@pytest.mark.parametrize("command", ["replay", "report", "parse"])
def test_a_packed_log_that_ends_too_early_is_told_by_name(
    command: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    log = tmp_path / "run.log.gz"
    log.write_bytes(packed[: len(packed) // 2])
    assert main([command, str(log)]) == 1
    assert capsys.readouterr().err.startswith(f"{log}: the compressed data ends too early")


@pytest.mark.parametrize("command", ["replay", "report", "parse"])
@pytest.mark.parametrize("content", [b"step:1 - timing_s/gen:1.0\n", gzip.compress(b"")[:10] + b"\xff" * 99])
def test_what_is_no_gzip_is_told_by_name(
    command: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(content)
    assert main([command, str(log)]) == 1
    assert capsys.readouterr().err.startswith(f"{log}: cannot be unpacked")


@pytest.mark.parametrize("command", ["replay", "report", "parse"])
def test_a_pipe_is_not_waited_for(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main([command, str(pipe)]) == 1
    assert f"{pipe}: is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["replay", "report", "parse"])
def test_text_of_a_log_or_its_name_does_not_steer_the_terminal(
    command: str, hostile_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(hostile_log)]) == 0
    assert main([command, f"{hostile_log}.absent"]) == 1
    said = capsys.readouterr()
    assert "no such file" in said.err
    for text in said:
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_parse_shows_what_it_made_harmless(hostile_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(hostile_log)]) == 0
    assert "a\\x1b]0;owned\\x07\\u202eb" in capsys.readouterr().out


def test_a_file_name_that_is_no_text_names_a_run_all_the_same(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / os.fsdecode(b"run-\xff.log")
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    assert main(["replay", "--json", str(log)]) == 0
    assert {json.loads(line)["run"] for line in capsys.readouterr().out.splitlines()} == {"run-\\udcff"}


def test_the_settings_of_a_configuration_hold(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(recorded / "verl-0.3.0.post1.driver.log")
    config = tmp_path / "verlwatch.yaml"
    config.write_text("detection: {accept_after_steps: 60}\n")
    assert main(["replay", "--config", str(config), "--json", log]) == 0
    last = [found for line in capsys.readouterr().out.splitlines() if (found := json.loads(line))["phase"] == "gen"][-1]
    assert (last["phase"], last["closed_as"]) == ("gen", "accepted")
    assert main(["report", "--config", str(config), log]) == 0
    assert ": accepted" in capsys.readouterr().out
    assert main(["report", log]) == 0
    assert ": accepted" not in capsys.readouterr().out

    config.write_text("reading: {line_limit: 64 KiB}\n")
    long = tmp_path / "long.log"
    padding = " - ".join(f"actor/x{i}:0.5" for i in range(6000))
    long.write_text(f"step:1 - {padding} - timing_s/gen:10.5 - timing_s/step:20.5\n")
    assert main(["report", str(long)]) == 0
    assert "1 steps" in capsys.readouterr().out
    assert main(["report", "--config", str(config), str(long)]) == 0
    assert "no step with timing" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_bad_configuration_is_told_with_its_place(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.touch()
    config = tmp_path / "verlwatch.yaml"
    config.write_text("detection: {false_alarms: often}\n")
    assert main([command, "--config", str(config), str(log)]) == 2
    assert f"{config}:1:" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--json"], ["--paste"]])
def test_a_log_in_which_nothing_is_read_is_told(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log := tmp_path / "other.log").write_text("some text\n")
    (empty := tmp_path / "empty.log").touch()
    (good := tmp_path / "good.log").write_text("Total training steps: 9\n")
    assert main(["parse", *options, str(log), str(empty), str(good)]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    first, second = said.err.splitlines()
    assert first.startswith(f"nothing is read in {log}: no line is of a kind")
    assert second == f"nothing is read in {empty}: it is empty"


def test_parse_reads_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (log := tmp_path / "good.log").write_text("Total training steps: 9\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"step:1 - timing_s/gen:1.5 - timing_s/step:2.5\n")))
    assert main(["parse", "--json", "-", str(log)]) == 0
    assert [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()] == ["step_metrics", "plan"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["parse", "-"]) == 0
    assert capsys.readouterr().err == "nothing is read in standard input: it is empty\n"
