"""`verlwatch gpus`: cards beside their peers, in a terminal of 100 columns; and what is said where none are seen."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import orjson
import pytest

from tests.fakes.nvml import GIB, FakeNvml, cards, loaded
from tests.shell.http.fake import NOW, card, slow_run, status
from verlwatch.cli import main
from verlwatch.commands import _cards, _daemon, check, gpus
from verlwatch.commands.status import render
from verlwatch.core.rules.memory_divergence import TURN_ON
from verlwatch.shell.gpu import _once
from verlwatch.shell.gpu._card import SourceError
from verlwatch.shell.gpu.nvml import Nvml
from verlwatch.status import GpuStatus, RunStatus, Status


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> list[Status]:
    """What the daemon answers: the last of the list."""
    answers = [status()]
    monkeypatch.setattr(_daemon, "ask", lambda *_: ("http://127.0.0.1:9/", orjson.dumps(answers[-1])))
    return answers


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """Eight cards of this host, seen by NVML alone."""
    for command in (gpus, check):
        monkeypatch.setattr(command, "SOURCES", (Nvml,))
    with loaded(made_up := FakeNvml(*cards(8))):
        yield made_up


# ---------------------------------------------------------------------------------------------------- a daemon
def test_each_card_stands_beside_its_peers(daemon: list[Status], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus"]) == 0
    said = capsys.readouterr().out
    table = said[: said.index("\n\n")].splitlines()
    assert table == [
        "qwen2.5-7b-grpo: step 213, 4 cards, seen 2 s ago",
        "  host    gpu  rank  actor       used / total GB  util  offset  lately",
        "  node-1  0    8     WorkerDict      46.2 / 79.7  97 %    -0.1  ▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▅▅▅▅▅▅▅",
        "  node-1  1    9     WorkerDict      68.3 / 79.7  97 %   +22.0  ▅▅▅▅▅▆▆▆▆▆▆▆▆▆▆▆▆▇▇▇▇▇▇",
        "  node-1  2    10    WorkerDict      46.4 / 79.7  97 %    +0.1  ▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▅▅▅▅▅▅▅",
        "  node-1  3    11    WorkerDict          missing     -       -  ▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▅▅▅▅▅▅▅",
    ]


def test_runs_whose_ranks_cannot_be_compared_are_named_with_what_to_switch_on(
    daemon: list[Status], capsys: pytest.CaptureFixture[str]
) -> None:
    hint = f"Ranks cannot be compared: nothing tells the memory of the cards. {TURN_ON}"
    daemon.append(replace(status(), runs=tuple(RunStatus(name=f"r{i}", ranks_hint=hint) for i in range(5))))
    assert main(["gpus"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("r0, r1, r2 and 2 more:\n  Ranks cannot be compared: nothing tells")
    assert "RAY_DEDUP_LOGS=0" in said
    assert said.count("Ranks cannot") == 1
    assert max(map(len, said.splitlines())) <= _cards.WIDTH


def test_one_run_can_be_asked_for_and_one_that_is_not_there_is_told(
    daemon: list[Status], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpus", "--run", "llama3-8b-ppo"]) == 0
    assert "qwen" not in capsys.readouterr().out
    assert main(["gpus", "--run", "other"]) == 1
    assert capsys.readouterr().err == (
        "there is no run other; those that are watched: qwen2.5-7b-grpo, llama3-8b-ppo, sanity-check\n"
    )


def test_programs_get_all_that_is_known(daemon: list[Status], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--json", "--run", "qwen2.5-7b-grpo"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["run"], run["ranks_compared"], run["ranks_hint"]) == ("qwen2.5-7b-grpo", True, "")
    assert [(one["gpu"], one["rank"], one["offset_gb"], len(one["recent"])) for one in run["gpus"]] == [
        ("0", "8", -0.1, 23),
        ("1", "9", 22.0, 23),
        ("2", "10", 0.1, 23),
        ("3", "11", 0.0, 23),
    ]


def test_an_agent_names_its_hub_and_a_daemon_without_runs_says_so(
    daemon: list[Status], capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.append(Status(version="1", started_at=NOW, now=NOW, ready=True, role="agent"))
    assert main(["gpus"]) == 0
    assert "ask its hub" in capsys.readouterr().out
    daemon.append(Status(version="1", started_at=NOW, now=NOW, ready=True))
    assert main(["gpus"]) == 0
    assert capsys.readouterr().out == "no run is known yet\n"


# ---------------------------------------------------------------------------------------------------- the table
HOSTILE = "\x1b[31m\u202eevil\n" * 20


@pytest.mark.parametrize(
    "shown",
    [
        [card(gpu, 40.0, 0.0) for gpu in range(64)],
        [card(0, 40.0, 0.0, host="h" * 300, rank="1,2,3,4,5,6,7,8", actor="A" * 90)],
        [card(0, 40.0, 0.0, host=HOSTILE, rank=HOSTILE, actor=HOSTILE)],
        [GpuStatus(host="")],
        [GpuStatus(host="", pid=10191, used_gb=4.1, recent=(4.0, None, 4.1))],
    ],
    ids=["many", "long", "hostile", "nothing known", "of a log"],
)
def test_no_line_is_longer_than_a_hundred_columns_or_steers_a_terminal(shown: list[GpuStatus]) -> None:
    lines = list(_cards.table(shown))
    assert len(lines) == 1 + len(shown)
    assert max(map(len, lines)) <= _cards.WIDTH
    assert not set("\x1b\u202e\n") & set("".join(lines))


def test_groups_stand_apart() -> None:
    shown = [replace(card(gpu, 40.0, 0.0), group=group) for gpu, group in enumerate(("a", "b", "a", None))]
    lines = list(_cards.table(shown))
    assert [line.strip() for line in lines if line.endswith(":")] == ["group a:", "group b:", "alone:"]
    assert [line.split()[1] for line in lines if "node-1" in line] == ["0", "2", "1", "3"]


def test_a_strip_goes_from_nothing_to_all_of_a_card() -> None:
    shown = GpuStatus(host="h", total_gb=80.0, recent=(0.0, 40.0, None, 80.0, 999.0))
    assert _cards.bars(shown, 24) == "▁▅ ██"
    assert _cards.bars(shown, 2) == "██"
    assert _cards.bars(GpuStatus(host="h", recent=(1.0, 2.0)), 24) == "▅█"


def test_an_offset_of_nearly_nothing_has_no_sign_of_less() -> None:
    assert " +0.0 " in list(_cards.table([card(0, 40.0, -0.04)]))[1]


# ---------------------------------------------------------------------------------------------------- this host
def test_this_host_is_asked_once_without_a_daemon(
    driver: FakeNvml, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_daemon, "ask", lambda *_: pytest.fail("nobody is asked"))
    driver.cards[5].used = 50 * GIB
    assert main(["gpus", "--here"]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == f"{socket.gethostname()}: 8 cards by nvml"
    assert [row.split()[-2] for row in rows] == ["+0.0"] * 5 + ["+22.0"] + ["+0.0"] * 2
    assert "50.0 / 80.0" in rows[5]


def test_what_one_look_shows_is_there_for_programs(driver: FakeNvml, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--here", "--json"]) == 0
    (here,) = json.loads(capsys.readouterr().out)
    assert (here["host"], here["source"], len(here["gpus"])) == (socket.gethostname(), "nvml", 8)
    assert here["gpus"][0]["used_gb"] == 28.0


def test_a_host_without_cards_says_why_of_each_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with loaded(None):
        assert main(["gpus", "--here"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("no GPU of this host is seen: nvml: libnvidia-ml.so.1 is not there")
    assert "nvidia-smi is not on the PATH" in said


def test_processes_are_named_as_the_daemon_names_them(driver: FakeNvml, tmp_path: Path) -> None:
    driver.cards[2].processes = [(72, 25 * GIB)]
    (tmp_path / "72").mkdir()
    (tmp_path / "72" / "cmdline").write_bytes(b"ray::WorkerDict.update")
    (tmp_path / "72" / "environ").write_bytes(b"RANK=10\0")
    shown = gpus.of_host(_once.sampled((Nvml,), proc=str(tmp_path)), "n1")
    assert [(one.host, one.gpu, one.rank, one.actor, one.pid) for one in shown if one.rank] == [
        ("n1", "2", "10", "WorkerDict", 72)
    ]


def test_a_call_that_does_not_come_back_is_not_waited_for(driver: FakeNvml) -> None:
    driver.hangs["nvmlDeviceGetMemoryInfo_v2", 3] = over = Event()
    try:
        with pytest.raises(SourceError, match="a call to nvml has not come back for"):
            _once.sampled((Nvml,), 0.2)
    finally:
        over.set()


# ---------------------------------------------------------------------------------------------------- check, status
def checked(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    (log := tmp_path / "train.log").touch()
    (config := tmp_path / "verlwatch.yaml").write_text(f"runs: [{{name: r, logs: [{log}]}}]\n{text}")
    assert main(["check", "--config", str(config)]) == 0
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "GPUs of this host: 8 cards by nvml"),
        ("gpu: {source: nvml, urls: ['http://127.0.0.1:1/metrics']}", "by nvml, 1 exporters besides"),
        ("gpu: {source: 'off'}", "GPUs of this host: not sampled (gpu.source is off)"),
        ("gpu: {source: nvidia-smi}", "none seen (no source is left)"),
    ],
)
def test_check_says_what_cards_would_be_read_with(
    driver: FakeNvml, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert said in checked(tmp_path, text, capsys)


def test_check_says_what_to_switch_on_where_no_card_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SOURCES", (Nvml,))
    with loaded(None):
        said = checked(tmp_path, "", capsys)
    assert said.startswith("GPUs of this host: none seen (nvml: libnvidia-ml.so.1 is not there")
    assert said.endswith(f"ranks cannot be compared. {TURN_ON}")


def test_the_status_says_once_that_ranks_cannot_be_compared() -> None:
    hint = f"Ranks cannot be compared: nothing tells the memory of the cards. {TURN_ON}"
    runs: tuple[RunStatus, ...] = (slow_run(), *(RunStatus(name=name, ranks_hint=hint) for name in ("a", "b")))
    ended = RunStatus(name="ended", state="finished", ranks_hint=hint)
    text = render(replace(status(), runs=(*runs, ended)))
    assert "\na, b:\n  Ranks cannot be compared: nothing tells the memory of the cards. Sample the GPUs" in text
    assert text.count("Ranks cannot be compared") == 1
    assert "Ranks" not in render(replace(status(), runs=(slow_run(),)))
