"""NVIDIA cards by NVML, the library of the driver that nvidia-smi itself asks.

It makes no CUDA context, so it takes no memory of a card.  What a card or a driver does not support is left out.  A
driver that was unloaded and loaded again is taken up with new handles.  With MIG a card has no memory of its own to
tell: its instances have.

Source: nvml.h; the binding is nvidia-ml-py (extra ``nvml``).  Memory is ``nvmlDeviceGetMemoryInfo_v2``, which counts
what the driver reserves apart, as nvidia-smi's ``memory.used`` does since driver 510; older drivers have the first
version alone, and their nvidia-smi shows that.
"""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from verlwatch.core.lines.nvidia_smi import throttle
from verlwatch.shell.gpu._card import GIB, Card, Fault, FaultKind, Process, Sample, SourceError, Values
from verlwatch.shell.gpu._nvml_events import Events, GoneError, code_of

_T = TypeVar("_T")
_LIBRARY = "libnvidia-ml.so.1"
_UNSUPPORTED = frozenset({3, 13, 25, 26})  # NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED
_NO_PERMISSION = 4
_GONE = frozenset({15, 16, 28})  # GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND
_RELOADED = frozenset({1, 9, 18})  # UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH
_WHY_NOT = {
    9: "the NVIDIA driver is not loaded",
    12: f"{_LIBRARY} is not there: no NVIDIA driver, or one that this container does not see",
    18: "the NVIDIA driver was replaced by another version; restart verlwatch to load its library",
    4: "this user may not ask the NVIDIA driver (permission denied)",
}
_MIG_ON = 1
SENSORS_S = 9.0
"""How long power, temperature and counts of errors stand for a card that is sampled more often."""
_NOTHING_SENSED: tuple[float, bool, Values] = (float("-inf"), False, {})
_INSTANCES = 16  # most that are asked for; a card has up to seven


class Nvml:
    """See the module."""

    NAME: ClassVar[str] = "nvml"

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.asking = ""
        self._now = now
        self._nvml: Any = None
        self._avoid: frozenset[str] = frozenset()
        self._handles: dict[str, Any] = {}
        self._known: dict[str, dict[str, str | int | float]] = {}  # what does not change of a card, by index
        self._refused: dict[str, tuple[FaultKind, str]] = {}  # why a card has no handle
        self._failed: dict[str, str] = {}  # why the memory of a card could not be read just now
        self._sensed: dict[str, tuple[float, bool, Values]] = {}
        self._told: set[tuple[str, FaultKind]] = set()  # faults that last
        self._without: set[tuple[str, str]] = set()  # what a card does not support
        self._notes: dict[str, None] = {}
        self._events: Events | None = None
        self._lost = ""  # why the driver was left

    # ------------------------------------------------------------------------------------------------ GpuSource
    def open(self, avoid: frozenset[str]) -> None:
        """Loads the library and asks it what cards there are."""
        nvml = _binding()
        self._avoid = avoid
        self.close()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise SourceError(_WHY_NOT.get(code_of(error), f"NVML does not start: {error}")) from None
        self._nvml = nvml
        try:
            self._find()
        except GoneError as error:
            self._leave(str(error))
            return
        if not self._handles and not self._refused:
            self.close()
            raise SourceError("NVML lists no card")

    def sample(self) -> Sample:
        """All cards, and their MIG instances."""
        faults: list[Fault] = []
        for last in (False, True):
            if self._lost and self._nvml is None:
                self.open(self._avoid)
            if self._nvml is None:
                raise SourceError("NVML is not open")
            if self._lost:
                faults.append(Fault("driver_reload", f"the driver is back: {self._lost}"))
                self._lost = ""
            try:
                return self._sampled(faults)
            except GoneError as error:
                self._leave(str(error))
                if last:
                    raise SourceError(f"the NVIDIA driver does not stay: {error}") from None
        raise AssertionError

    def close(self) -> None:
        """Shuts the library down, if it was started."""
        nvml, self._nvml = self._nvml, None
        self._handles = {}
        self._without = set()
        self._notes = {}
        self._failed = {}
        self._sensed = {}
        if nvml is not None:
            if self._events is not None:
                self._events.close()
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
        self._events = None

    # ------------------------------------------------------------------------------------------------ cards
    def _sampled(self, faults: list[Fault]) -> Sample:
        self._find()
        cards: list[Card] = []
        for index, handle in list(self._handles.items()):
            self.asking = index
            try:
                cards += self._asked(index, handle)
            except _CardGone as gone:
                del self._handles[index]
                self._refused[index] = "missing", str(gone)
            else:
                self._told.discard((index, "missing"))
        self.asking = ""
        for index in sorted(self._known.keys() - self._handles.keys() - self._avoid, key=int):
            self._tell(index, *self._refused.get(index, ("missing", "the driver lists it no more")), faults)
        for index in self._handles:
            if index in self._failed:
                self._tell(index, "unreadable", f"its memory cannot be read: {self._failed.pop(index)}", faults)
            else:
                self._told.discard((index, "unreadable"))
        if self._events is not None:
            faults += self._events.heard()
        return Sample(tuple(cards), tuple(faults), tuple(self._notes))

    def _tell(self, index: str, kind: FaultKind, why: str, faults: list[Fault]) -> None:
        """Tells once of what lasts."""
        if (index, kind) not in self._told:
            self._told.add((index, kind))
            uuid = self._known.get(index, {}).get("uuid", "")
            faults.append(Fault(kind, f"{why} ({uuid})" if uuid else why, index))

    def _find(self) -> None:
        """Takes up the cards that have no handle yet."""
        nvml = self._nvml
        count = self._count()
        for index in (str(number) for number in range(count)):
            if index in self._handles or index in self._avoid:
                continue
            self.asking = index
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(int(index))
                known = {"uuid": nvml.nvmlDeviceGetUUID(handle), "name": nvml.nvmlDeviceGetName(handle)}
            except nvml.NVMLError as error:
                self._raise_if_reloaded(error)
                denied = code_of(error) == _NO_PERMISSION
                self._refused[index] = "unreadable" if denied else "missing", str(error)
                if denied:
                    self._notes[f"GPU {index} may not be asked by this user (permission denied)"] = None
                self._known.setdefault(index, {})
                continue
            self._refused.pop(index, None)
            self._handles[index], self._known[index] = handle, known
            if self._events is None:
                self._events = Events.made(nvml)
            if self._events is not None:
                self._events.add(index, handle)
        for index in [index for index in self._handles if int(index) >= count]:
            del self._handles[index]
        self.asking = ""

    def _count(self) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            self._raise_if_reloaded(error)
            raise SourceError(f"NVML does not count cards: {error}") from None

    def _asked(self, index: str, handle: Any) -> list[Card]:
        """The card, and its MIG instances behind it."""
        has_mig, slow = self._sensors(index, handle)
        parts = self._instances(index, handle) if has_mig else []
        values = {**self._known[index], **slow}
        if not parts:
            self._put_memory(index, handle, values)
        rates = self._ask(index, "utilization", self._nvml.nvmlDeviceGetUtilizationRates, handle)
        if rates is not None:
            values["utilization"] = float(rates.gpu)
        return [Card(index, values, () if parts else self._processes(index, handle)), *parts]

    def _sensors(self, index: str, handle: Any) -> tuple[bool, Values]:
        """Whether MIG is on, and the values that change slowly and take a driver long to tell."""
        looked_at, had_mig, sensed = self._sensed.get(index, _NOTHING_SENSED)
        if self._now() - looked_at < SENSORS_S:
            return had_mig, sensed
        nvml, ask = self._nvml, self._ask
        values: dict[str, str | int | float] = {}
        mode = ask(index, "MIG mode", nvml.nvmlDeviceGetMigMode, handle)
        if (milliwatts := ask(index, "power", nvml.nvmlDeviceGetPowerUsage, handle)) is not None:
            values["power_w"] = milliwatts / 1000
        if (celsius := ask(index, "temperature", nvml.nvmlDeviceGetTemperature, handle, 0)) is not None:
            values["temperature_c"] = float(celsius)
        mask = ask(index, "clock event reasons", nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if mask is None:
            mask = ask(index, "throttle reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if mask is not None:
            values["throttle"] = throttle(mask)
        if (errors := ask(index, "ECC errors", nvml.nvmlDeviceGetTotalEccErrors, handle, 1, 0)) is not None:
            values["ecc_uncorrected"] = errors  # uncorrected, since the driver was loaded
        if (replays := ask(index, "PCIe replays", nvml.nvmlDeviceGetPcieReplayCounter, handle)) is not None:
            values["pcie_replay"] = replays
        if (errors := self._nvlink_errors(index, handle)) is not None:
            values["nvlink_errors"] = errors
        has_mig = mode is not None and mode[0] == _MIG_ON
        self._sensed[index] = self._now(), has_mig, values
        return has_mig, values

    def _instances(self, index: str, handle: Any) -> list[Card]:
        nvml = self._nvml
        most = self._ask(index, "MIG instances", nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
        cards = []
        for number in range(min(most, _INSTANCES)):
            try:
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            except nvml.NVMLError as error:
                self._raise_if_reloaded(error)
                continue  # a gap: none has that number
            name = f"{index}:{number}"
            with suppress(_CardGone):  # it was taken apart just now
                cards.append(self._instance(name, part))
        return cards

    def _instance(self, name: str, part: Any) -> Card:
        values: dict[str, str | int | float] = {}
        if uuid := self._ask(name, "uuid", self._nvml.nvmlDeviceGetUUID, part):
            values["uuid"] = uuid
        if full := self._ask(name, "name", self._nvml.nvmlDeviceGetName, part):
            values["name"] = full
            if (profile := full.partition(" MIG ")[2]) and " " not in profile:
                values["mig"] = profile
        self._put_memory(name, part, values)
        return Card(name, values, self._processes(name, part))

    # ------------------------------------------------------------------------------------------------ values
    def _put_memory(self, index: str, handle: Any, values: dict[str, str | int | float]) -> None:
        nvml = self._nvml
        memory = self._ask(index, "memory", nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
        if memory is None and (index, "memory") in self._without:
            memory = self._ask(index, "memory as of old drivers", nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            values["used_gb"], values["total_gb"] = memory.used / GIB, memory.total / GIB

    def _processes(self, index: str, handle: Any) -> tuple[Process, ...]:
        nvml = self._nvml
        found = self._ask(index, "processes", nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
        if found is None and (index, "processes") in self._without:
            found = self._ask(index, "older processes", nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
        return tuple(
            Process(int(one.pid), one.usedGpuMemory / GIB if one.usedGpuMemory is not None else None)
            for one in found or ()
        )

    def _nvlink_errors(self, index: str, handle: Any) -> int | None:
        """CRC errors, replays and recoveries of all links together; cards from Hopper on do not give these."""
        nvml = self._nvml
        fields = (
            nvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
            nvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
            nvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
            nvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
        )
        found = self._ask(index, "NVLink errors", nvml.nvmlDeviceGetFieldValues, handle, fields)
        told = [field.value.ullVal for field in found or () if field.nvmlReturn == 0]
        if found is not None and not told:
            self._without.add((index, "NVLink errors"))
        return sum(told) if told else None

    def _ask(self, index: str, what: str, call: Callable[..., _T], *arguments: Any) -> _T | None:
        """What NVML answers; None where it does not know, and it is not asked again what it cannot know."""
        if (index, what) in self._without:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            self._raise_if_reloaded(error)
            code = code_of(error)
            if code in _GONE:
                raise _CardGone(str(error)) from None
            if code in _UNSUPPORTED:
                self._without.add((index, what))
            elif code == _NO_PERMISSION:
                self._without.add((index, what))
                self._notes[f"{what} of GPU {index} cannot be read (permission denied)"] = None
            elif what == "memory":
                self._failed[index] = str(error)
            return None

    # ------------------------------------------------------------------------------------------------ the driver
    def _raise_if_reloaded(self, error: Exception) -> None:
        if code_of(error) in _RELOADED:
            raise GoneError(str(error)) from None

    def _leave(self, why: str) -> None:
        self._lost = why
        self.close()


class _CardGone(Exception):  # noqa: N818 - names what happened
    """A card does not answer any more; the others do."""


def _binding() -> ModuleType:
    """The binding, which takes 5 MB: only where there is a library for it."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        raise SourceError(_WHY_NOT[12]) from None
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise SourceError("the binding of NVML is not installed: pip install 'verlwatch[nvml]'") from None
