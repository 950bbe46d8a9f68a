"""`verlwatch init` finds what trains here and writes a configuration that the daemon takes."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

import pytest

from verlwatch.cli import main
from verlwatch.commands import init
from verlwatch.config import Config, load
from verlwatch.shell.survey import Limits, Survey, survey

DAY_S = 86_400


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty host: the current folder, and no Ray."""
    for name in ("VERL_FILE_LOGGER_ROOT", "RAY_TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(init, "_RAY", tmp_path / "tmp-ray")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def console(first: int = 1, last: int = 20, seed: float = 0.0) -> str:
    """Step lines as verl 0.5 prints them; trainings of different seeds take different times."""
    seconds = [(n, seed + n % 7) for n in range(first, last + 1)]
    return "".join(
        f"step:{n} - timing_s/gen:{40 + s} - timing_s/step:{77.5 + s} - timing_s/start_profile:1e-05\n"
        for n, s in seconds
    )


def jsonl(last: int = 20, seed: float = 0.0) -> str:
    return "".join(
        f'{{"step":{n},"data":{{"timing_s/gen":{40 + seed + n % 7},"timing_s/step":{77.5 + seed + n % 7}}}}}\n'
        for n in range(1, last + 1)
    )


def put(path: Path, text: str, *, days_ago: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    when = time.time() - DAY_S * days_ago
    os.utime(path, (when, when))
    return path


def runs(file: Path = Path("verlwatch.yaml")) -> dict[str, tuple[str, ...]]:
    return {run.name: run.logs for run in load(file).runs}


def look(*folders: Path, **limits: float) -> Survey:
    return survey([str(folder) for folder in folders], (), Limits(**limits), time.time())  # type: ignore[arg-type]


def test_console_and_jsonl_of_one_training_are_one_run_and_the_daemon_takes_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put(home / "job" / "train.log", "a header\n" + console())
    file = put(home / "math" / "grpo.jsonl", jsonl(last=19))
    assert main(["init"]) == 0
    assert runs() == {"math/grpo": (str(log), str(file))}
    text = Path("verlwatch.yaml").read_text()
    assert re.search(r"^  # step 20 \(83\.5 s\), grew \d+ s ago, verl 0\.5$", text, re.MULTILINE)
    assert stat.S_IMODE(Path("verlwatch.yaml").stat().st_mode) == 0o600
    assert "verlwatch run --config verlwatch.yaml" in capsys.readouterr().out
    assert main(["check", "--config", "verlwatch.yaml"]) == 0


def test_different_trainings_are_different_runs_with_names_of_their_own(home: Path) -> None:
    for seed, name in enumerate(("a/train.log", "b/x/train.log", "c/x/nohup.out", "d/ppo.log")):
        put(home / name, console(seed=seed), days_ago=seed / 100)
    assert main(["init", "."]) == 0
    assert list(runs()) == ["a", "x", "x-2", "ppo"]


def test_a_file_that_exists_is_left_alone_unless_forced(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home / "train.log", console())
    Path("verlwatch.yaml").write_text("mine")
    assert main(["init"]) == 1
    assert "verlwatch.yaml exists; --force replaces it" in capsys.readouterr().err
    assert Path("verlwatch.yaml").read_text() == "mine"
    assert main(["init", "--force"]) == 0
    assert list(runs()) == ["home"]
    assert stat.S_IMODE(Path("verlwatch.yaml").stat().st_mode) == 0o600
    assert sorted(os.listdir()) == ["train.log", "verlwatch.yaml"]  # noqa: PTH208


def test_it_is_printed_where_that_is_asked_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home / "train.log", console())
    assert main(["init", "--output", "-"]) == 0
    put(home / "printed.yaml", capsys.readouterr().out)
    assert list(runs(home / "printed.yaml")) == ["home"]
    assert not Path("verlwatch.yaml").exists()


def test_a_place_that_cannot_be_written_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home / "train.log", console())
    assert main(["init", "--output", "absent/verlwatch.yaml"]) == 1
    assert "absent/verlwatch.yaml: no such file or directory; --output" in capsys.readouterr().err


def test_where_nothing_is_found_it_says_where_it_looked_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / "other.log", "epoch 1 loss 2.0\n")
    put(home / "old.log", console(), days_ago=5)
    monkeypatch.setenv("RAY_TMPDIR", str(home / "scratch"))
    assert main(["init"]) == 1
    said = capsys.readouterr().err
    for place in (str(home), f"{home}/scratch/ray/session_latest", "tmp-ray/session_latest", "verlwatch init DIR"):
        assert place in said
    assert not Path("verlwatch.yaml").exists()
    assert main(["init", "--days", "6"]) == 0
    assert list(runs()) == ["old"]


def test_a_folder_that_is_not_there_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(home / "absent")]) == 1
    assert f"{home}/absent is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.usefixtures("home")
def test_days_are_a_number(days: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["init", "--days", days])
    assert end.value.code == 2


def test_below_verls_log_root_it_looks_too_and_offers_one_entry_for_all(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "verl-logs"
    put(root / "math" / "ppo.jsonl", jsonl())
    monkeypatch.setenv("VERL_FILE_LOGGER_ROOT", str(root))
    assert main(["init", str(home)]) == 0
    assert list(runs()) == ["math/ppo"]
    assert f'  #   logs: ["{root}/*/*.jsonl"]' in Path("verlwatch.yaml").read_text().splitlines()


@pytest.mark.parametrize("variable", [True, False], ids=["RAY_TMPDIR", "default"])
def test_the_latest_ray_session_is_named_by_its_link_and_joined_with_the_console(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, variable: bool
) -> None:
    base = tmp_path / "scratch" / "ray" if variable else tmp_path / "tmp-ray"
    if variable:
        monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "scratch"))
    head = ":job_id:01000000\n:actor_name:TaskRunner\n"
    put(base / "session_1" / "logs" / f"worker-{7:056x}-01000000-7.out", head + console())
    (base / "session_latest").symlink_to("session_1")
    log = put(home / "grpo.log", console())
    assert main(["init"]) == 0
    assert runs() == {"grpo": (str(log), str(base / "session_latest"))}
    assert main(["check", "--config", "verlwatch.yaml"]) == 0


def test_workers_logs_in_a_folder_are_looked_at_as_a_session(home: Path) -> None:
    for pid, name, text in ((7, "TaskRunner", console()), (8, "WorkerDict", "")):
        put(home / "kept" / f"worker-{pid:056x}-01000000-{pid}.out", f":job_id:01000000\n:actor_name:{name}\n{text}")
    assert main(["init"]) == 0
    assert runs() == {"ray": (str(home / "kept"),)}


def test_a_training_that_has_only_begun_is_found(home: Path) -> None:
    put(home / "train.log", "Total training steps: 300\n")
    assert main(["init"]) == 0
    assert "# no step yet, grew " in Path("verlwatch.yaml").read_text()


def test_a_step_before_much_other_output_is_found(home: Path) -> None:
    put(home / "near.log", console() + "sample\n" * 100_000)
    put(home / "far.log", console(seed=1) + "sample\n" * 700_000)
    (training,) = look(home).trainings
    assert [(Path(log.path).name, log.step) for log in training] == [("near.log", 20)]


def test_links_pipes_rotated_and_checkpoint_files_are_left_alone(home: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "train.log", console())
    (home / "folder").symlink_to(outside.parent)
    (home / "link.log").symlink_to(outside)
    os.mkfifo(home / "pipe.log")
    put(home / "train.2024.log.1", console())
    put(home / "global_step_100" / "x.log", console())
    put(home / ".cache" / "x.log", console())
    assert look(home).trainings == []


def test_names_that_people_cannot_read_are_left_out_and_odd_ones_come_back_as_they_are(home: Path) -> None:
    put(home / "red\x1b[31m.log", console(seed=1))
    odd = [put(home / name, console(seed=n)) for n, name in enumerate((' #"{x}: [1]*.log', "no.log", "größe'.log"))]
    assert main(["init"]) == 0
    assert {log for logs in runs().values() for log in logs} == {str(path) for path in odd}
    assert ' #"(x): [1]*'.strip() in runs()


def test_the_other_settings_stand_there_with_their_defaults(home: Path) -> None:
    put(home / "train.log", console())
    assert main(["init", "--output", "-", "--force"]) == 0
    assert main(["init"]) == 0
    _, _, settings = Path("verlwatch.yaml").read_text().partition("# All other settings, with their defaults.\n")
    text = "".join(line.removeprefix("# ") for line in settings.splitlines(keepends=True))
    assert load(put(home / "defaults.yaml", text)) == Config()
    assert all(f"{name}:" in text for name in Config.model_fields if name not in {"runs", "receivers"})


def test_the_search_is_bounded_in_depth_folders_files_and_time(home: Path) -> None:
    for number in range(4):
        put(home / f"d{number}" / "train.log", console(seed=number), days_ago=number / 10)
    put(home / "d0" / "e" / "f" / "train.log", console(seed=9))
    assert len(look(home, depth=2).trainings) == 4
    assert look(home, depth=2).notes == ["folders more than 2 deep were not looked into"]
    assert [Path(log.path).parent.name for [log] in look(home, files=2).trainings] == ["f", "d0"]
    assert look(home, files=2).notes == ["3 of 5 recent files were not looked into"]
    assert len(look(home, folders=3).trainings) == 2
    assert "the search met its bound" in look(home, folders=3).notes[0]
    assert look(home, seconds=-1.0).trainings == []
