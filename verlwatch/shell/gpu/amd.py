"""AMD cards by ``amd-smi`` and, where that is not there, ``rocm-smi``; neither tells the processes here.

    [{"gpu": 0, "usage": {"gfx_activity": {"value": 47, "unit": "%"}},
      "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 297, "unit": "MB"}}, …}]
    {"card0": {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "311951360", "GPU use (%)": "47"}}

Source: ``amd-smi metric --json`` (a bare list, or since ROCm 7 one below ``gpu_data``; its MB are 2**20 bytes) and
``rocm-smi --json``.  Numbers may be texts, and what a card does not have is ``N/A``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import orjson

from verlwatch.shell.gpu._card import GIB, Card, Sample, SourceError
from verlwatch.shell.gpu._command import LIMIT_S, Command

_UNITS = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30}
_AMD_SMI = ("metric", "--mem-usage", "--usage", "--power", "--temperature", "--ecc", "--json")
_ROCM_SMI = ("--showmeminfo", "vram", "--showuse", "--showpower", "--showtemp", "--showuniqueid", "--json")


class _Smi:
    """A program that prints all cards as JSON."""

    NAME: ClassVar[str]
    _ARGUMENTS: ClassVar[tuple[str, ...]]

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._command = Command(self.NAME, limit_s)
        self.asking = ""

    def open(self, avoid: frozenset[str]) -> None:
        """Looks whether the program is there.  It asks all cards or none: with one to avoid it is of no use."""
        self._command.path()
        if avoid:
            raise SourceError(f"{self.NAME} asks cards that do not answer")

    def sample(self) -> Sample:
        """All cards."""
        cards = self._cards(self._command.output(*self._ARGUMENTS))
        if not cards:
            raise SourceError(f"{self.NAME} lists no card")
        return Sample(cards)

    def close(self) -> None:
        """Nothing is held."""

    def _cards(self, text: str) -> tuple[Card, ...]:
        raise NotImplementedError


class AmdSmi(_Smi):
    """See the module."""

    NAME: ClassVar[str] = "amd-smi"
    _ARGUMENTS: ClassVar[tuple[str, ...]] = _AMD_SMI

    def _cards(self, text: str) -> tuple[Card, ...]:
        return amd_smi_cards(text)


class RocmSmi(_Smi):
    """See the module."""

    NAME: ClassVar[str] = "rocm-smi"
    _ARGUMENTS: ClassVar[tuple[str, ...]] = _ROCM_SMI

    def _cards(self, text: str) -> tuple[Card, ...]:
        return rocm_smi_cards(text)


def amd_smi_cards(text: str) -> tuple[Card, ...]:
    """The cards in what ``amd-smi metric --json`` prints."""
    data = _json(text, "[{")
    entries = data.get("gpu_data") if isinstance(data, dict) else data
    cards = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("gpu"), int):
            continue
        found = {
            "used_gb": _size(entry, "mem_usage", "used_vram"),
            "total_gb": _size(entry, "mem_usage", "total_vram"),
            "utilization": _number(_at(entry, "usage", "gfx_activity")),
            "power_w": _number(_at(entry, "power", "socket_power")),
            "temperature_c": _number(_at(entry, "temperature", "hotspot")),
            "ecc_uncorrected": _number(_at(entry, "ecc", "total_uncorrectable_count")),
        }
        cards.append(Card(str(entry["gpu"]), {name: value for name, value in found.items() if value is not None}))
    return tuple(cards)


def rocm_smi_cards(text: str) -> tuple[Card, ...]:
    """The cards in what ``rocm-smi --json`` prints; warnings may stand before it."""
    data = _json(text, "{")
    cards = []
    for name, entry in data.items() if isinstance(data, dict) else ():
        index = name.removeprefix("card")
        if not isinstance(entry, dict) or not name.startswith("card") or not index.isdecimal():
            continue
        used, total = (_number(entry.get(f"VRAM Total {word}Memory (B)")) for word in ("Used ", ""))
        power = entry.get("Current Socket Graphics Package Power (W)", entry.get("Average Graphics Package Power (W)"))
        found = {
            "used_gb": used / GIB if used is not None else None,
            "total_gb": total / GIB if total is not None else None,
            "utilization": _number(entry.get("GPU use (%)")),
            "power_w": _number(power),
            "temperature_c": _number(entry.get("Temperature (Sensor junction) (C)")),
        }
        values: dict[str, str | int | float] = {key: value for key, value in found.items() if value is not None}
        if isinstance(uuid := entry.get("Unique ID"), str) and uuid.startswith("0x"):
            values["uuid"] = uuid
        cards.append(Card(str(int(index)), values))
    return tuple(cards)


def _json(text: str, opening: str) -> Any:
    """What stands in ``text`` from the first line on that begins with one of ``opening``."""
    lines = text.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if line.lstrip()[:1] in set(opening)), len(lines))
    try:
        return orjson.loads("".join(lines[first:]))
    except orjson.JSONDecodeError:
        return None


def _at(entry: dict[str, Any], *path: str) -> Any:
    value: Any = entry
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _size(entry: dict[str, Any], *path: str) -> float | None:
    """GiB; None where the unit is not known either."""
    value = _at(entry, *path)
    unit = _UNITS.get(str(value.get("unit", "MB"))) if isinstance(value, dict) else None
    number = _number(value)
    return number * unit / GIB if unit is not None and number is not None else None
