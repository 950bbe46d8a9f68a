"""NVIDIA cards by the program, and what every program may do wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from verlwatch.shell.gpu._card import Card, Process, SourceError
from verlwatch.shell.gpu._command import Command
from verlwatch.shell.gpu.smi import NvidiaSmi, apps_of, cards_of

Program = Callable[[str, str], Path]

GPUS = """\
0, GPU-7d1f0c3a-0000-0000, NVIDIA H100 80GB HBM3, 28672, 81559, 97, 412.33, 61, 0, 0x0000000000000004
1, GPU-8e2f1d4b-0000-0000, NVIDIA H100 80GB HBM3, 46080, 81559, [N/A], [N/A], 63, [N/A], [N/A]
2, GPU-9f3a2e5c-0000-0000, NVIDIA H100 80GB HBM3, [GPU is lost], [GPU is lost], ERR!, ERR!, ERR!, 0, 0x0
"""
APPS = """\
GPU-7d1f0c3a-0000-0000, 4711, 27648
GPU-7d1f0c3a-0000-0000, 4712, [N/A]
"""
ANSWERS = f"""\
case "$1" in
--query-gpu=*) cat <<'END'
{GPUS}END
;;
--query-compute-apps=*) cat <<'END'
{APPS}END
;;
esac
"""


def test_the_rows_are_cards_and_what_is_not_told_is_absent() -> None:
    first, second, lost = cards_of(GPUS)
    assert first.values == {
        "uuid": "GPU-7d1f0c3a-0000-0000",
        "name": "NVIDIA H100 80GB HBM3",
        "used_gb": 28.0,
        "total_gb": 81559 / 1024,
        "utilization": 97.0,
        "power_w": 412.33,
        "temperature_c": 61.0,
        "ecc_uncorrected": 0.0,
        "throttle": "power",
    }
    assert second.values.keys() == {"uuid", "name", "used_gb", "total_gb", "temperature_c"}
    assert lost.values.keys() == {"uuid", "name", "ecc_uncorrected", "throttle"}


@pytest.mark.parametrize("text", ["", "No devices were found\n", "0, GPU-1, H100\n", "x, y, z, 1, 2, 3, 4, 5, 6, 7\n"])
def test_what_is_no_row_is_no_card(text: str) -> None:
    assert cards_of(text) == ()


def test_processes_are_those_of_their_card_with_the_memory_where_it_is_told() -> None:
    assert apps_of(APPS) == {
        "GPU-7d1f0c3a-0000-0000": [Process(4711, 27.0), Process(4712)],
    }


def test_the_program_is_asked_for_cards_and_processes(program: Program) -> None:
    program("nvidia-smi", ANSWERS)
    source = NvidiaSmi()
    source.open(frozenset())
    first, second, _ = source.sample().cards
    assert (first.gpu, first.processes) == ("0", (Process(4711, 27.0), Process(4712)))
    assert second.processes == ()


def test_a_release_that_does_not_know_all_columns_is_asked_for_fewer(program: Program) -> None:
    program(
        "nvidia-smi",
        'case "$1" in *throttle*) '
        """echo 'Field "clocks_throttle_reasons.active" is not a valid field to query.'; exit 2;;\n"""
        "--query-gpu*) echo '0, GPU-1, H100, 1024, 81920, 5, 90.5, 33';; esac",
    )
    source = NvidiaSmi()
    assert source.sample().cards == (
        Card(
            "0",
            {
                "uuid": "GPU-1",
                "name": "H100",
                "used_gb": 1.0,
                "total_gb": 80.0,
                "utilization": 5.0,
                "power_w": 90.5,
                "temperature_c": 33.0,
            },
        ),
    )


def test_cards_stay_where_their_processes_cannot_be_told(program: Program) -> None:
    program("nvidia-smi", ANSWERS.replace("--query-compute-apps=*) cat", "--query-compute-apps=*) exit 4; cat"))
    sample = NvidiaSmi().sample()
    assert len(sample.cards) == 3
    assert sample.notes == ("nvidia-smi failed (4): ",)


def test_a_program_that_is_not_there_is_told_so(program: Program) -> None:
    with pytest.raises(SourceError, match="nvidia-smi is not on the PATH"):
        NvidiaSmi().open(frozenset())


def test_what_a_failing_program_says_is_told_and_harmless(program: Program) -> None:
    program(
        "nvidia-smi",
        r"printf 'Unable to determine the device handle for GPU0000:3B:00.0: \033[31mGPU is lost\n'; exit 15",
    )
    with pytest.raises(SourceError, match=r"failed \(15\): Unable to .* \\x1b\[31mGPU is lost"):
        NvidiaSmi().sample()


def test_a_program_that_does_not_end_is_killed_with_its_children(program: Program, tmp_path: Path) -> None:
    program("slow", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    begun = time.monotonic()
    with pytest.raises(SourceError, match=r"slow did not answer within 0\.3 s"):
        Command("slow", 0.3).output()
    assert time.monotonic() - begun < 5
    child = int((tmp_path / "child").read_text())
    assert _is_gone(child)


def test_what_prints_without_end_is_killed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verlwatch.shell._program.MOST_BYTES", 1 << 20)
    program("loud", "exec yes")
    begun = time.monotonic()
    with pytest.raises(SourceError, match="loud printed more than 1 MiB"):
        Command("loud").output()
    assert time.monotonic() - begun < 5


def test_a_process_that_cannot_be_killed_is_not_joined_by_another(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program("slow", f"echo >> {tmp_path}/starts; exec sleep 60")
    command = Command("slow", 0.3)
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    monkeypatch.setattr("verlwatch.shell._program._DYING_S", 0.05)
    with pytest.raises(SourceError, match="did not answer"):
        command.output()
    with pytest.raises(SourceError, match="hangs and cannot be killed"):
        command.output()
    assert (tmp_path / "starts").read_text() == "\n"
    stuck = command._stuck
    assert stuck is not None
    kill(stuck.pid, 9)
    stuck.wait()
    with pytest.raises(SourceError, match="did not answer"):  # it is gone: another is started
        command.output()
    stuck = command._stuck
    assert stuck is not None
    kill(stuck.pid, 9)
    stuck.wait()


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
