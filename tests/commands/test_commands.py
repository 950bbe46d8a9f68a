"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from verlwatch import __version__
from verlwatch.cli import COMMANDS, build_parser, main
from verlwatch.commands import _common


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"verlwatch {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples_or_a_promise(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([name.replace("_", "-"), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text or name == "demo"


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        build_parser().parse_args(["rum"])
    assert end.value.code == 2
    assert "rum" in capsys.readouterr().err


def test_a_daemon_loads_no_other_command() -> None:
    ask = "import sys; from verlwatch.cli import build_parser; build_parser('run'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("verlwatch.")}
    assert "verlwatch.commands.run" in loaded
    assert not {"verlwatch.report", "verlwatch.commands.report", "verlwatch.commands.demo"} & loaded


@pytest.mark.parametrize("command", ["replay", "report", "parse"])
def test_files_that_cannot_be_read_are_all_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path / "absent.log"), str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "absent.log: no such file" in said
    assert f"{tmp_path}: is a directory" in said


def test_parse_prints_one_record_a_line_under_verls_own_keys(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["parse", "--json", str(recorded / "verl-0.3.0.post1.driver.log")]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = next(record for record in records if record.get("step") == 1)
    assert first["kind"] == "step_metrics"
    assert first["writer"] == {"name": "TaskRunner", "pid": 8785, "ip": ""}
    assert first["values"]["timing_s/gen"] == 39.133
    assert first["derived"]["seconds"]["gen"] == 39.133
    assert first["derived"]["ms_per_token"]["old_log_prob"] > 0
    assert (first["derived"]["verl"], first["derived"]["verl_is_certain"]) == ("0.2-0.3", True)
    saving = next(record for record in records if record.get("step") == 50)
    parts = saving["derived"]["seconds"]
    whole = saving["values"]["timing_s/step"]
    assert parts["step"] == pytest.approx(whole - parts["testing"] - parts["save_checkpoint"])
    assert {"kind", "position", "writer", "severity", "attributes", "excerpt"} == set(
        next(record for record in records if "attributes" in record)
    )
    assert [record["position"] for record in records] == sorted(record["position"] for record in records)


def test_a_report_fits_the_screen_and_tells_each_change(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--last", "12", str(recorded / "verl-0.4.1.debug.driver.log")]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert "300 steps, 1 to 300 of 300" in text
    assert "4 changes:" in text  # a gradient that is not finite is one
    assert "gen: phase_shift, onset step 200, told at step 202, closed at step 300: run ended" in text
    assert "validation" in text
    assert "per token" in text


@pytest.mark.parametrize("last", ["0", "-1", "²", "٣", "1_0", "+5", " 5", "", "9" * 5000, "1e3", "many"])
def test_the_length_of_a_table_is_a_plain_number(last: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["report", f"--last={last}", "train.log"])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert "is not a number of steps; give 1 to 999999999" in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("log", "name"),
    [("/a/train.log", "train"), ("/a/train.log.gz", "train"), ("/a/run[1].b.log", "run[1].b"), ("a.gz.log", "a.gz")],
)
def test_a_run_of_a_finished_log_is_called_after_the_file(log: str, name: str) -> None:
    assert _common.run_name(Namespace(logs=[Path(log)], run=None)) == name
    assert _common.run_name(Namespace(logs=[Path(log)], run="mine")) == "mine"


def test_a_report_of_a_log_without_steps_says_what_to_switch_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "empty.log"
    log.write_text("nothing here\n")
    assert main(["report", str(log)]) == 0
    assert "trainer.logger" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "steps"), [("nothing here\n", 0), ("step:1 - timing_s/gen:40.1 - timing_s/step:60.2\n", 1)]
)
def test_a_log_too_short_to_judge_is_not_called_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, steps: int
) -> None:
    log = tmp_path / "short.log"
    log.write_text(text)
    assert main(["replay", str(log)]) == 0
    assert f"nothing found in {steps} steps with timing: too few" in capsys.readouterr().out


def test_a_truncated_step_is_unknown_in_the_report_not_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "cut.log"
    log.write_text(
        "step:1 - actor/lr:0.000 - timing_s/gen:40.100 - timing_s/ref:5.100 - timing_s/step:60.000\n"
        "step:2 - actor/lr:0.000 - timing_s/gen:41.200 - timing_s/ref:5.\n"
    )
    assert main(["report", str(log)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("2 "))
    assert row.split()[1:4] == ["-", "41.2", "-"]


def test_a_bar_shows_on_a_terminal_once_the_work_has_taken_a_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 0.9, 2.0])
    monkeypatch.setattr("verlwatch.commands._common.time.monotonic", lambda: next(clock))
    with _common.bar() as off:
        assert off is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with _common.bar() as show:
        assert show is not None
        show(10_000_000, 40_000_000)
        assert capsys.readouterr().err == ""
        show(20_000_000, 40_000_000)
    said = capsys.readouterr().err
    assert "50%  10 MB/s" in said
    assert said.endswith("\r\x1b[K")


def test_check_reports_every_problem_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{logs: [a.log]}]\nhttp: {lisen: 1}\ndetection: {false_alarms: often}\n")
    assert main(["check", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert f"{config}:2:8: http.lisen" in said
    assert f"{config}:3:" in said


def test_run_starts_nothing_with_a_bad_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{logs: [a.log]}]\nruns: []\n")
    assert main(["run", "--config", str(config), "--state-dir", str(tmp_path / "state")]) == 2
    assert f"{config}:2:1" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_run_without_anything_to_watch_says_what_to_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["run"]) == 2
    assert "--log" in capsys.readouterr().err


def test_a_dry_run_prints_the_payload_and_needs_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-notify", "--dry-run", "--slack-webhook-file", str(tmp_path / "not-there-yet")]) == 0
    assert json.loads(capsys.readouterr().out)["blocks"]


def test_an_unknown_receiver_is_named_beside_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-notify", "nobody", "--webhook-url", "http://127.0.0.1:9/hook"]) == 2
    said = capsys.readouterr().err
    assert "nobody" in said
    assert "webhook" in said


def test_a_receiver_that_does_not_answer_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-notify", "--webhook-url", "http://127.0.0.1:9/hook"]) == 1
    assert "not delivered" in capsys.readouterr().err


def test_status_of_no_daemon_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", "http://127.0.0.1:9/"]) == 1
    assert "is the daemon running" in capsys.readouterr().err
