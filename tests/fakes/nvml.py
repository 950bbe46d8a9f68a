"""NVML below its real binding: what nvidia-ml-py gets in place of ``libnvidia-ml.so.1``.

The binding loads it as it loads the library, finds the C functions by their names, passes C structures by reference and
turns the codes that are returned into its own exceptions; only the driver behind it is made up.  A scenario is changed
while it runs: `cards`, `errors` (a code for a function, of all cards or one), `hangs` (a function of one card waits for
an event), `loaded`.  Source: nvml.h.
"""

# ruff: noqa: N802 - the names are those of the C functions
from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

SUCCESS, UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 1, 3, 4, 6
INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, TIMEOUT, GPU_IS_LOST, MISMATCH, UNKNOWN = 7, 9, 10, 15, 18, 999
GIB = 1 << 30
MIB = 1 << 20


@dataclass
class FakePart:
    """A MIG instance."""

    uuid: str
    profile: str = "1g.10gb"
    used: int = 0
    total: int = 10 * GIB
    processes: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class FakeCard:
    """A card as its driver would tell of it."""

    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    used: int = 2 * GIB
    reserved: int = 600 * MIB
    total: int = 80 * GIB
    utilization: int = 97
    milliwatts: int = 412_330
    celsius: int = 61
    reasons: int = 0x4
    ecc: int = 0
    replays: int = 0
    nvlink: tuple[int, int, int, int] = (0, 0, 0, 0)
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    parts: dict[int, FakePart] = field(default_factory=dict)
    is_lost: bool = False


class FakeNvml:
    """The library: `getattr` gives the C function of that name."""

    def __init__(self, *cards: FakeCard) -> None:
        self.cards = list(cards)
        self.errors: dict[tuple[str, int | None], int] = {}
        self.hangs: dict[tuple[str, int], Event] = {}
        self.xids: list[tuple[int, int]] = []  # index of the card, number
        self.loaded = True
        self.replaced = False
        self.without: set[str] = set()  # functions that this driver does not have
        self.calls = 0
        self._epoch = 0  # handles of before a driver's reload are worth nothing
        self._running = 0

    def unload(self) -> None:
        """Unloads the driver, as ``rmmod`` or a reset do."""
        self.loaded = False
        self._running = 0
        self._epoch += 1

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("nvml") or name in self.__dict__.get("without", ()):
            raise AttributeError(name)
        implementation = getattr(type(self), f"_{name}", None)

        def call(*arguments: Any) -> int:
            self.calls += 1
            if name == "nvmlInitWithFlags":
                return self._init()
            if not self._running:
                return UNINITIALIZED
            if not self.loaded:
                return DRIVER_NOT_LOADED
            if (code := self.errors.get((name, None))) is not None:
                return code
            return int(implementation(self, *arguments)) if implementation else NOT_SUPPORTED

        return call

    # ------------------------------------------------------------------------------------------------ the library
    def _init(self) -> int:
        if self.replaced:
            return MISMATCH
        if not self.loaded:
            return DRIVER_NOT_LOADED
        if (code := self.errors.get(("nvmlInitWithFlags", None))) is not None:
            return code
        self._running += 1
        return SUCCESS

    def _nvmlShutdown(self) -> int:
        self._running -= 1
        return SUCCESS

    def _nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.cards)
        return SUCCESS

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, device: Any) -> int:
        if index.value >= len(self.cards):
            return 2
        if (code := self._refused("nvmlDeviceGetHandleByIndex_v2", index.value)) is not None:
            return code
        _point(device._obj, self._address(index.value))
        return GPU_IS_LOST if self.cards[index.value].is_lost else SUCCESS

    def _address(self, index: int, part: int = 0) -> int:
        return 0x10000 + self._epoch * 0x1000000 + index * 0x100 + part

    def _at(self, handle: Any) -> tuple[int, int]:
        address = (ctypes.cast(handle, ctypes.c_void_p).value or 0) - 0x10000 - self._epoch * 0x1000000
        return (address // 0x100, address % 0x100) if 0 <= address < 0x1000000 else (-1, 0)

    def _refused(self, name: str, index: int) -> int | None:
        if event := self.hangs.get((name, index)):
            event.wait()
        return self.errors.get((name, index))

    def _asked(self, name: str, handle: Any, answer: Callable[[FakeCard], object]) -> int:
        """Runs ``answer`` for the card of a handle, if that answers at all."""
        index, _ = self._at(handle)
        if not 0 <= index < len(self.cards):
            return 2
        if (code := self._refused(name, index)) is not None:
            return code
        card = self.cards[index]
        if card.is_lost:
            return GPU_IS_LOST
        said = answer(card)
        return said if isinstance(said, int) else SUCCESS

    def _part(self, handle: Any) -> FakePart | None:
        index, part = self._at(handle)
        return self.cards[index].parts[part - 1] if part else None

    # ------------------------------------------------------------------------------------------------ a card
    def _nvmlDeviceGetUUID(self, handle: Any, text: Any, _size: Any) -> int:
        part = self._part(handle)
        return self._asked("nvmlDeviceGetUUID", handle, lambda card: _put(text, "value", (part or card).uuid.encode()))

    def _nvmlDeviceGetName(self, handle: Any, text: Any, _size: Any) -> int:
        part = self._part(handle)
        suffix = f" MIG {part.profile}" if part else ""
        return self._asked("nvmlDeviceGetName", handle, lambda card: _put(text, "value", (card.name + suffix).encode()))

    def _nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> int:
        part, told = self._part(handle), memory._obj

        def answer(card: FakeCard) -> int:
            told.used, told.total = (part.used, part.total) if part else (card.used, card.total)
            told.reserved = 0 if part else card.reserved
            told.free = told.total - told.used - told.reserved
            return SUCCESS

        return self._asked("nvmlDeviceGetMemoryInfo_v2", handle, answer)

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        """The first version counts what is reserved as used."""
        told = memory._obj

        def answer(card: FakeCard) -> int:
            told.used, told.total = card.used + card.reserved, card.total
            told.free = told.total - told.used
            return SUCCESS

        return self._asked("nvmlDeviceGetMemoryInfo", handle, answer)

    def _nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        return self._asked(
            "nvmlDeviceGetUtilizationRates",
            handle,
            lambda card: NOT_SUPPORTED if card.parts else _put(rates._obj, "gpu", card.utilization),
        )

    def _nvmlDeviceGetPowerUsage(self, handle: Any, power: Any) -> int:
        return self._asked("nvmlDeviceGetPowerUsage", handle, lambda card: _put(power._obj, "value", card.milliwatts))

    def _nvmlDeviceGetTemperature(self, handle: Any, _sensor: Any, degrees: Any) -> int:
        return self._asked("nvmlDeviceGetTemperature", handle, lambda card: _put(degrees._obj, "value", card.celsius))

    def _nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, mask: Any) -> int:
        name = "nvmlDeviceGetCurrentClocksEventReasons"
        return self._asked(name, handle, lambda card: _put(mask._obj, "value", card.reasons))

    def _nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, mask: Any) -> int:
        name = "nvmlDeviceGetCurrentClocksThrottleReasons"
        return self._asked(name, handle, lambda card: _put(mask._obj, "value", card.reasons))

    def _nvmlDeviceGetTotalEccErrors(self, handle: Any, _kind: Any, _counter: Any, count: Any) -> int:
        return self._asked("nvmlDeviceGetTotalEccErrors", handle, lambda card: _put(count._obj, "value", card.ecc))

    def _nvmlDeviceGetPcieReplayCounter(self, handle: Any, count: Any) -> int:
        name = "nvmlDeviceGetPcieReplayCounter"
        return self._asked(name, handle, lambda card: _put(count._obj, "value", card.replays))

    def _nvmlDeviceGetFieldValues(self, handle: Any, count: Any, values: Any) -> int:
        def answer(card: FakeCard) -> int:
            for number in range(count.value):
                values._obj[number].nvmlReturn = SUCCESS if card.nvlink else NOT_SUPPORTED
                if card.nvlink:
                    values._obj[number].value.ullVal = card.nvlink[number]
            return SUCCESS

        return self._asked("nvmlDeviceGetFieldValues", handle, answer)

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int:
        part = self._part(handle)

        def answer(card: FakeCard) -> int:
            there = part.processes if part else card.processes
            room, count._obj.value = count._obj.value, len(there)
            if not there:
                return SUCCESS
            if processes is None or room < len(there):
                return INSUFFICIENT_SIZE
            for one, (pid, used) in zip(processes, there, strict=False):
                one.pid, one.usedGpuMemory = pid, (1 << 64) - 1 if used is None else used
            return SUCCESS

        return self._asked("nvmlDeviceGetComputeRunningProcesses_v3", handle, answer)

    # ------------------------------------------------------------------------------------------------ MIG, events
    def _nvmlDeviceGetMigMode(self, handle: Any, current: Any, _pending: Any) -> int:
        return self._asked(
            "nvmlDeviceGetMigMode", handle, lambda card: _put(current._obj, "value", int(bool(card.parts)))
        )

    def _nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, count: Any) -> int:
        return self._asked("nvmlDeviceGetMaxMigDeviceCount", handle, lambda _: _put(count._obj, "value", 7))

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, number: Any, device: Any) -> int:
        index, _ = self._at(handle)
        if number.value not in self.cards[index].parts:
            return NOT_FOUND
        _point(device._obj, self._address(index, number.value + 1))
        return SUCCESS

    def _nvmlEventSetCreate(self, events: Any) -> int:
        _point(events._obj, 0x42)
        return SUCCESS

    def _nvmlEventSetFree(self, _events: Any) -> int:
        return SUCCESS

    def _nvmlDeviceGetSupportedEventTypes(self, _handle: Any, kinds: Any) -> int:
        kinds._obj.value = 0x1A
        return SUCCESS

    def _nvmlDeviceRegisterEvents(self, _handle: Any, _kinds: Any, _events: Any) -> int:
        return SUCCESS

    def _nvmlEventSetWait_v2(self, _events: Any, event: Any, _timeout: Any) -> int:
        if not self.xids:
            return TIMEOUT
        index, number = self.xids.pop(0)
        _point(event._obj, self._address(index))  # the device is its first field
        event._obj.eventType, event._obj.eventData = 0x8, number
        return SUCCESS


@contextmanager
def loaded(library: FakeNvml | None) -> Iterator[None]:
    """The binding loads ``library`` in place of the real one; None: there is none."""
    binding: Any = importlib.import_module("pynvml")

    def load(name: str, *arguments: Any, **options: Any) -> Any:
        if name != "libnvidia-ml.so.1":
            return before(name, *arguments, **options)
        if library is None:
            raise OSError(f"{name}: cannot open shared object file: No such file or directory")
        return library

    before = ctypes.CDLL
    _forget(binding)
    binding.CDLL = ctypes.CDLL = load  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        binding.CDLL = ctypes.CDLL = before  # type: ignore[misc]
        _forget(binding)


def _forget(binding: Any) -> None:
    binding.nvmlLib = None
    binding._nvmlGetFunctionPointer_cache.clear()


def _put(target: Any, name: str, value: object) -> None:
    setattr(target, name, value)


def _point(pointer: Any, address: int) -> None:
    ctypes.memmove(ctypes.addressof(pointer), ctypes.byref(ctypes.c_void_p(address)), ctypes.sizeof(ctypes.c_void_p))


def cards(count: int, used_gib: float = 28.0) -> list[FakeCard]:
    """So many like cards."""
    return [
        FakeCard(f"GPU-{number:08x}-0000-0000-0000-000000000000", used=round(used_gib * GIB)) for number in range(count)
    ]
