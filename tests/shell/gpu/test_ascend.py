"""What npu-smi prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from verlwatch.shell.gpu._card import Card, Process, SourceError
from verlwatch.shell.gpu.ascend import NpuSmi, npu_smi_cards

ONE_CHIP = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 101.8       43                0    / 0             |
| 0                         | 0000:C1:00.0  | 12          0    / 0          43008/ 65536         |
+===========================+===============+====================================================+
| 5     910B3               | Alarm         | -           39                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3072 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 124528        | ray::WorkerDict          | 40960                   |
| 0       0                 | 124529        | python3                  | 1024                    |
+===========================+===============+====================================================+
| No running processes found in NPU 5                                                            |
+===========================+===============+====================================================+
"""
TWO_CHIPS = """\
| npu-smi 26.0.rc1                            Version: 26.0.rc1                                                    |
| NPU   Name                | Health        | Power(W)             Temp(C)                 Hugepages-Usage(page)   |
| Chip  Phy-ID              | Bus-Id        | AICore(%)            Memory-Usage(MB)        HBM-Usage(MB)           |
| 2     Ascend910           | OK            | 159.7                44                      0    / 0                |
| 0     4                   | 0000:95:00.0  | 7                    0    / 0                62464/ 65536            |
| 2     Ascend910           | OK            | -                    42                      0    / 0                |
| 1     5                   | 0000:97:00.0  | 0                    0    / 0                61440/ 65536            |
| NPU     Chip              | Process id    | Process name       | Process memory(MB)    | Process id in container |
| 2       1                 | 824166        | VLLMWorker_TP      | 59392                 | NA                      |
"""
WITHOUT_HBM = """\
| 3     310P3               | OK            | NA          47                0    / 0             |
| 0     1                   | 0000:3B:00.0  | 0           1536 / 21504                           |
"""


def test_cards_with_one_chip_are_counted_by_card() -> None:
    assert npu_smi_cards(ONE_CHIP) == (
        Card(
            "0",
            {
                "name": "910B3",
                "used_gb": 42.0,
                "total_gb": 64.0,
                "utilization": 12.0,
                "power_w": 101.8,
                "temperature_c": 43.0,
            },
            (Process(124528, 40.0), Process(124529, 1.0)),
        ),
        Card("5", {"name": "910B3", "used_gb": 3.0, "total_gb": 64.0, "utilization": 0.0, "temperature_c": 39.0}),
    )


def test_chips_that_have_an_id_of_their_own_are_counted_by_it() -> None:
    first, second = npu_smi_cards(TWO_CHIPS)
    assert (first.gpu, first.values["used_gb"], first.processes) == ("4", 61.0, ())
    assert (second.gpu, second.values["used_gb"], second.processes) == ("5", 60.0, (Process(824166, 58.0),))
    assert "power_w" not in second.values


def test_a_card_without_hbm_has_its_other_memory() -> None:
    (card,) = npu_smi_cards(WITHOUT_HBM)
    assert (card.gpu, card.values["used_gb"], card.values["total_gb"]) == ("1", 1.5, 21.0)


@pytest.mark.parametrize("text", ["", "DrvMngGetConsoleLogLevel failed.", ONE_CHIP[:700], "| a | b |\n| c | d |\n"])
def test_what_is_no_such_table_has_no_cards(text: str) -> None:
    assert npu_smi_cards(text) == ()


def test_the_program_is_asked(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    (tmp_path / "table").write_text(ONE_CHIP)
    program("npu-smi", f'[ "$1" = info ] && cat {tmp_path}/table')
    source = NpuSmi()
    source.open(frozenset())
    assert [card.gpu for card in source.sample().cards] == ["0", "5"]
    with pytest.raises(SourceError, match="do not answer"):
        source.open(frozenset({"5"}))
