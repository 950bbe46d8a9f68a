"""What NVML tells by itself: Xid errors and double bit errors, as they happen.

Source: nvml.h, ``nvmlEventSetWait``.  Not on all systems (no WSL), and only from the registration on.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

from verlwatch.shell.gpu._card import Fault

_MOST = 64  # that are taken at once
_DOUBLE_BIT_ECC = 0x2
_XID = 0x8


class GoneError(Exception):
    """The driver was unloaded or replaced: nothing that was asked of it before holds any more."""


def code_of(error: Exception) -> int:
    """The NVML_ERROR_… of an NVMLError."""
    return int(getattr(error, "value", 0))


class Events:
    """Those of the cards that were added."""

    def __init__(self, nvml: Any, events: Any) -> None:
        self._nvml = nvml
        self._set = events
        self._cards: dict[int | None, str] = {}

    @classmethod
    def made(cls, nvml: Any) -> Events | None:
        """None where there are no events."""
        try:
            return cls(nvml, nvml.nvmlEventSetCreate())
        except nvml.NVMLError:
            return None

    def add(self, index: str, handle: Any) -> None:
        """Hears of this card too, if it tells anything."""
        nvml = self._nvml
        with suppress(nvml.NVMLError):
            wanted = nvml.nvmlDeviceGetSupportedEventTypes(handle) & (_XID | _DOUBLE_BIT_ECC)
            if wanted:
                nvml.nvmlDeviceRegisterEvents(handle, wanted, self._set)
                self._cards[_address(handle)] = index

    def heard(self) -> list[Fault]:
        """What has happened since the last time; waits for nothing."""
        nvml, faults = self._nvml, []
        for _ in range(_MOST if self._cards else 0):
            try:
                event = nvml.nvmlEventSetWait_v2(self._set, 0)
            except nvml.NVMLError:  # a timeout: there is no other
                break
            index = self._cards.get(_address(event.device), "")
            if event.eventType & _XID:
                faults.append(Fault("xid", f"Xid {event.eventData}", index))
            elif event.eventType & _DOUBLE_BIT_ECC:
                faults.append(Fault("ecc", "a double bit error of memory", index))
        return faults

    def close(self) -> None:
        """Lets go of them."""
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlEventSetFree(self._set)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
