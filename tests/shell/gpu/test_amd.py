"""What amd-smi and rocm-smi print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from verlwatch.shell.gpu._card import SourceError
from verlwatch.shell.gpu.amd import AmdSmi, RocmSmi, amd_smi_cards, rocm_smi_cards

METRIC = [
    {
        "gpu": 0,
        "usage": {"gfx_activity": {"value": 47, "unit": "%"}, "umc_activity": {"value": 2, "unit": "%"}},
        "power": {"socket_power": {"value": 612, "unit": "W"}, "gfx_voltage": "N/A"},
        "temperature": {"edge": "N/A", "hotspot": {"value": 71, "unit": "C"}},
        "ecc": {"total_correctable_count": 3, "total_uncorrectable_count": 1},
        "mem_usage": {
            "total_vram": {"value": 196608, "unit": "MB"},
            "used_vram": {"value": 143360, "unit": "MB"},
            "free_vram": {"value": 53248, "unit": "MB"},
        },
    },
    {"gpu": 1, "usage": "N/A", "mem_usage": {"total_vram": {"value": 192, "unit": "GB"}, "used_vram": "N/A"}},
]
ROCM = {
    "card0": {
        "Unique ID": "0x1234abcd5678ef00",
        "Temperature (Sensor junction) (C)": "64.0",
        "Current Socket Graphics Package Power (W)": "512.0",
        "GPU use (%)": "93",
        "VRAM Total Memory (B)": "206158430208",
        "VRAM Total Used Memory (B)": "150323855360",
    },
    "card10": {"Average Graphics Package Power (W)": "N/A", "VRAM Total Memory (B)": "206158430208"},
    "system": {"Driver version": "6.10.5"},
}


@pytest.mark.parametrize("printed", [METRIC, {"gpu_data": METRIC}], ids=["a list", "below gpu_data, as since ROCm 7"])
def test_amd_smi_gives_cards_and_leaves_out_what_is_not_there(printed: object) -> None:
    first, second = amd_smi_cards(orjson.dumps(printed).decode())
    assert (first.gpu, first.values) == (
        "0",
        {
            "used_gb": 140.0,
            "total_gb": 192.0,
            "utilization": 47.0,
            "power_w": 612.0,
            "temperature_c": 71.0,
            "ecc_uncorrected": 1.0,
        },
    )
    assert (second.gpu, second.values) == ("1", {"total_gb": 192.0})


def test_rocm_smi_gives_cards_also_behind_a_warning() -> None:
    text = "\nWARNING: AMD GPU device(s) is/are in a low-power state\n\n" + orjson.dumps(ROCM).decode()
    first, second = rocm_smi_cards(text)
    assert (first.gpu, first.values) == (
        "0",
        {
            "uuid": "0x1234abcd5678ef00",
            "used_gb": 140.0,
            "total_gb": 192.0,
            "utilization": 93.0,
            "power_w": 512.0,
            "temperature_c": 64.0,
        },
    )
    assert (second.gpu, second.values) == ("10", {"total_gb": 192.0})


@pytest.mark.parametrize("text", ["", "null", "[1, 2]", '{"card0": 1}', '{"gpu_data": 3}', "{", '[{"gpu": "0"}]'])
def test_what_is_no_such_text_has_no_cards(text: str) -> None:
    assert amd_smi_cards(text) == rocm_smi_cards(text) == ()


def test_the_programs_are_asked(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    (tmp_path / "amd.json").write_bytes(orjson.dumps(METRIC))
    (tmp_path / "rocm.json").write_bytes(orjson.dumps(ROCM))
    program("amd-smi", f'case "$*" in metric*--json) cat {tmp_path}/amd.json;; esac')
    program("rocm-smi", f'case "$*" in "--showmeminfo vram"*--json) cat {tmp_path}/rocm.json;; esac')
    assert [card.gpu for card in AmdSmi().sample().cards] == ["0", "1"]
    assert [card.gpu for card in RocmSmi().sample().cards] == ["0", "10"]


def test_a_program_that_lists_nothing_is_of_no_use(program: Callable[[str, str], Path]) -> None:
    program("rocm-smi", "echo '{}'")
    source = RocmSmi()
    source.open(frozenset())
    with pytest.raises(SourceError, match="rocm-smi lists no card"):
        source.sample()
    with pytest.raises(SourceError, match="do not answer"):
        source.open(frozenset({"3"}))
