"""`verlwatch attach` and `verlwatch run --pid` find the log by themselves."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.fakes.slurm import FakeSlurm
from verlwatch.cli import main
from verlwatch.commands import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from verlwatch.config import Config


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations with which a daemon was to run."""
    configs: list[Config] = []

    def serve(config: Config, path: Path | None, read: Callable[[], Config]) -> int:
        assert (path, read()) == (None, config)
        configs.append(config)
        return 0

    monkeypatch.setattr(run, "_serve", serve)
    return configs


def test_a_job_is_watched_through_the_files_of_its_output(
    cluster: FakeSlurm, served: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "out [1].log"
    log.write_text("")
    cluster.job("4711", JobName="verl {grpo}", StdOut=str(log), StdErr=str(tmp_path / "err"))
    assert main(["attach", "4711", "--webhook-url", "https://ops.example.org/", "--log-level", "debug"]) == 0
    assert capsys.readouterr().err == (
        f"job 4711 (verl {{grpo}}) is RUNNING on gpu-node-[01-02]: watching {log}, {tmp_path}/err\n"
    )
    (config,) = served
    (watched,) = config.runs
    assert watched.logs == (f"{tmp_path}/out [[]1].log", f"{tmp_path}/err")
    assert (watched.name, watched.slurm_job, watched.pid, watched.wall_limit) == ("verl (grpo)", "4711", None, None)
    assert [receiver.name for receiver in config.receivers] == ["webhook"]
    assert config.logging.level == "debug"


def test_a_job_that_waits_is_watched_from_its_first_line(
    cluster: FakeSlurm, served: list[Config], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.job("4711_3", ArrayJobId="4711", ArrayTaskId="3", JobState="PENDING", NodeList="", BatchHost="")
    assert main(["attach", "4711_3", "--wall-limit", "24h", "--run-name", "run7", "--from", "end"]) == 0
    assert capsys.readouterr().err == (
        "job 4711_3 (verl-grpo) is PENDING: watching /data/run7/slurm-4711.out; it is not there yet\n"
    )
    (watched,) = served[0].runs
    assert (watched.name, watched.start, watched.slurm_job, watched.wall_limit) == ("run7", "end", "4711_3", 86_400.0)


def test_a_job_that_has_ended_is_told_with_how(
    cluster: FakeSlurm, served: list[Config], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.job("4711", JobState="OUT_OF_MEMORY", Reason="OutOfMemory", ExitCode="0:125")
    assert main(["attach", "4711"]) == 0
    assert len(served) == 1
    assert "job 4711 (verl-grpo) is OUT_OF_MEMORY (OutOfMemory) on gpu-node-[01-02]:" in capsys.readouterr().err


def test_the_log_can_be_named_where_the_script_sends_its_output_elsewhere(
    cluster: FakeSlurm, served: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.job("4711", BatchFlag="0")
    assert main(["attach", "4711"]) == 1
    assert capsys.readouterr().err == (
        "job 4711 has no file of its own for what it prints (salloc, srun?): name one with --log LOG\n"
    )
    assert served == []
    assert main(["attach", "4711", "--log", f"{tmp_path}/*.log"]) == 0
    assert served[0].runs[0].logs == (f"{tmp_path}/*.log",)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["attach", "verl"], 2, "'verl' is no id of a Slurm job; it is a number such as 4711, or 4711_3"),
        (["attach", "99"], 1, "Slurm knows no job 99: "),
        (
            ["attach", "4711", "--wall-limit", "soon"],
            2,
            "--wall-limit: runs[0].wall_limit: must be a number with a unit",
        ),
        (["run", "--log", "a.log", "--pid", "0"], 2, "--pid: runs[0].pid: must be at least 1"),
    ],
)
def test_what_cannot_be_watched_is_told(
    cluster: FakeSlurm,
    served: list[Config],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    cluster.job("4711")
    assert main(arguments) == code
    assert text in capsys.readouterr().err
    assert served == []


# ---------------------------------------------------------------------------------------------------- run --pid
@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A process and the file that it writes to."""
    log = tmp_path / "qwen-grpo.log"
    with log.open("wb") as file:
        child = subprocess.Popen(["sleep", "60"], stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    yield child.pid, log
    child.send_signal(signal.SIGKILL)
    child.wait()


def test_a_process_is_watched_with_the_file_that_it_writes_to(
    training: tuple[int, Path], served: list[Config], capsys: pytest.CaptureFixture[str]
) -> None:
    pid, log = training
    assert main(["run", "--pid", str(pid)]) == 0
    assert capsys.readouterr().err == f"process {pid}: watching {log}\n"
    (watched,) = served[0].runs
    assert (watched.name, watched.logs, watched.pid) == ("qwen-grpo", (str(log),), pid)


def test_a_process_can_be_watched_beside_a_log_that_is_named(training: tuple[int, Path], served: list[Config]) -> None:
    pid, log = training
    assert main(["run", "--pid", str(pid), "--log", f"{log.parent}/other.log"]) == 0
    (watched,) = served[0].runs
    assert (watched.name, watched.logs, watched.pid) == ("other", (f"{log.parent}/other.log",), pid)


def test_a_process_that_is_not_there_ends_the_command(served: list[Config], capsys: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert main(["run", "--pid", str(child.pid)]) == 1
    assert f"--pid {child.pid}: no such process on this host" in capsys.readouterr().err
    assert served == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/data/run7/train.log", "train"),
        ("/data/run7/slurm-4711.out", "slurm-4711"),
        ("/ray/session_1/logs/worker-0a-01000000-785.out", "session_1"),
        ("verl {grpo} v1.5", "verl (grpo) v1.5"),
        ("", "run"),
    ],
)
def test_a_run_is_named_after_its_file_or_job(text: str, name: str) -> None:
    assert run.run_name(text) == name
