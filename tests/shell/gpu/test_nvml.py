"""NVML through its real binding, over a driver that is made up."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fakes.nvml import (
    DRIVER_NOT_LOADED,
    GIB,
    MIB,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    FakeCard,
    FakeNvml,
    FakePart,
    cards,
    loaded,
)
from verlwatch.shell.gpu._card import Fault, Process, SourceError
from verlwatch.shell.gpu.nvml import Nvml


@pytest.fixture
def driver() -> Iterator[FakeNvml]:
    library = FakeNvml(*cards(2))
    with loaded(library):
        yield library


class _Time:
    """Goes on by ten seconds each time it is looked at: every sample looks at the sensors too."""

    def __init__(self) -> None:
        self.now, self.pace = 0.0, 10.0

    def __call__(self) -> float:
        self.now += self.pace
        return self.now


@pytest.fixture
def time() -> _Time:
    return _Time()


@pytest.fixture
def nvml(driver: FakeNvml, time: _Time) -> Iterator[Nvml]:
    source = Nvml(time)
    source.open(frozenset())
    yield source
    source.close()


def test_a_card_tells_all_it_knows(driver: FakeNvml, nvml: Nvml) -> None:
    driver.cards[1] = FakeCard(
        driver.cards[1].uuid, used=45 * GIB + 3 * MIB, reasons=0x24, ecc=2, replays=7, nvlink=(1, 0, 3, 0)
    )
    driver.cards[1].processes = [(4711, 40 * GIB), (4712, None)]
    card = nvml.sample().cards[1]
    assert card.gpu == "1"
    assert card.values == {
        "uuid": "GPU-00000001-0000-0000-0000-000000000000",
        "name": "NVIDIA H100 80GB HBM3",
        "used_gb": 45 + 3 / 1024,
        "total_gb": 80.0,
        "utilization": 97.0,
        "power_w": 412.33,
        "temperature_c": 61.0,
        "throttle": "thermal,power",
        "ecc_uncorrected": 2,
        "pcie_replay": 7,
        "nvlink_errors": 4,
    }
    assert card.processes == (Process(4711, 40.0), Process(4712, None))


def test_memory_that_the_driver_reserves_is_not_counted_as_nvidia_smi_does_not(driver: FakeNvml, nvml: Nvml) -> None:
    driver.cards[0].reserved = 600 * MIB
    assert nvml.sample().cards[0].values["used_gb"] == 28.0


def test_a_driver_before_510_has_the_first_version_of_memory_alone(driver: FakeNvml, nvml: Nvml) -> None:
    driver.without |= {"nvmlDeviceGetMemoryInfo_v2"}
    assert [nvml.sample().cards[0].values["used_gb"] for _ in range(2)] == [28.0 + 600 / 1024] * 2


def test_what_is_not_supported_is_left_out_and_not_asked_again(driver: FakeNvml, nvml: Nvml) -> None:
    for name in ("UtilizationRates", "PowerUsage", "TotalEccErrors", "PcieReplayCounter", "FieldValues", "MigMode"):
        driver.errors[f"nvmlDeviceGet{name}", None] = NOT_SUPPORTED
    first = nvml.sample()
    assert first.cards[0].values.keys() == {"uuid", "name", "used_gb", "total_gb", "temperature_c", "throttle"}
    before = driver.calls
    nvml.sample()
    asked_again = driver.calls - before
    driver.errors.clear()
    assert nvml.sample().cards[0].values.keys() == first.cards[0].values.keys()
    assert asked_again < 7 * len(driver.cards)


def test_a_card_without_nvlink_counters_is_not_asked_for_them_again(driver: FakeNvml, nvml: Nvml) -> None:
    for card in driver.cards:
        card.nvlink = ()  # type: ignore[assignment]
    assert "nvlink_errors" not in nvml.sample().cards[0].values
    driver.cards[0].nvlink = (1, 1, 1, 1)
    assert "nvlink_errors" not in nvml.sample().cards[0].values


def test_sensors_of_a_card_that_is_sampled_each_second_are_looked_at_every_ten(
    driver: FakeNvml, nvml: Nvml, time: _Time
) -> None:
    nvml.sample()
    time.pace = 0.0
    driver.cards[1].celsius, driver.cards[1].used = 80, 30 * GIB
    values = nvml.sample().cards[1].values
    assert (values["temperature_c"], values["used_gb"]) == (61.0, 30.0)
    time.now += 9
    assert nvml.sample().cards[1].values["temperature_c"] == 80.0


def test_throttling_has_its_older_name_in_older_drivers(driver: FakeNvml, nvml: Nvml) -> None:
    driver.without |= {"nvmlDeviceGetCurrentClocksEventReasons"}
    driver.cards[0].reasons = 0x8 | 0x40
    assert nvml.sample().cards[0].values["throttle"] == "thermal,hw_slowdown"


def test_a_value_that_may_not_be_read_is_noted(driver: FakeNvml, nvml: Nvml) -> None:
    driver.errors["nvmlDeviceGetComputeRunningProcesses_v3", 0] = NO_PERMISSION
    sample = nvml.sample()
    assert sample.notes == ("processes of GPU 0 cannot be read (permission denied)",)
    assert [card.values["used_gb"] for card in sample.cards] == [28.0, 28.0]


def test_a_user_who_may_not_ask_the_driver_is_told_so() -> None:
    driver = FakeNvml(*cards(1))
    driver.errors["nvmlInitWithFlags", None] = NO_PERMISSION
    with loaded(driver), pytest.raises(SourceError, match="permission denied"):
        Nvml().open(frozenset())


def test_one_card_that_may_not_be_asked_is_unreadable_not_missing(driver: FakeNvml) -> None:
    driver.errors["nvmlDeviceGetHandleByIndex_v2", 1] = NO_PERMISSION
    source = Nvml()
    source.open(frozenset())
    sample = source.sample()
    assert [card.gpu for card in sample.cards] == ["0"]
    assert sample.faults == (Fault("unreadable", "Insufficient Permissions", "1"),)
    assert sample.notes == ("GPU 1 may not be asked by this user (permission denied)",)
    source.close()


def test_no_driver_and_no_binding_are_told_apart(driver: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SourceError, match=r"pip install 'verlwatch\[nvml\]'"):
        Nvml().open(frozenset())
    monkeypatch.undo()
    with loaded(None), pytest.raises(SourceError, match=r"libnvidia-ml\.so\.1 is not there"):
        Nvml().open(frozenset())


def test_the_binding_is_loaded_only_where_there_is_a_library_for_it() -> None:
    code = (
        "import sys, contextlib; from verlwatch.shell.gpu.nvml import Nvml, SourceError\n"
        "with contextlib.suppress(SourceError): Nvml().open(frozenset())\n"
        "print('pynvml' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    with contextlib.suppress(OSError):
        ctypes.CDLL("libnvidia-ml.so.1")
        pytest.skip("there is an NVIDIA driver here")
    assert printed == "False\n"


def test_a_lost_card_is_missing_once_and_the_others_go_on(driver: FakeNvml, nvml: Nvml) -> None:
    nvml.sample()
    driver.cards[1].is_lost = True
    first, second = nvml.sample(), nvml.sample()
    assert [card.gpu for card in first.cards] == [card.gpu for card in second.cards] == ["0"]
    assert first.faults == (Fault("missing", "GPU is lost (GPU-00000001-0000-0000-0000-000000000000)", "1"),)
    assert second.faults == ()
    driver.cards[1].is_lost = False
    assert [card.gpu for card in nvml.sample().cards] == ["0", "1"]
    driver.cards[1].is_lost = True
    assert [fault.kind for fault in nvml.sample().faults] == ["missing"]


def test_a_card_that_the_driver_lists_no_more_is_missing(driver: FakeNvml, nvml: Nvml) -> None:
    nvml.sample()
    del driver.cards[1]
    assert [(fault.kind, fault.gpu) for fault in nvml.sample().faults] == [("missing", "1")]


def test_memory_that_cannot_be_read_just_now_is_a_fault_and_no_zero(driver: FakeNvml, nvml: Nvml) -> None:
    driver.errors["nvmlDeviceGetMemoryInfo_v2", 0] = UNKNOWN
    first, second = nvml.sample(), nvml.sample()
    assert "used_gb" not in first.cards[0].values
    assert [(fault.kind, fault.gpu) for fault in first.faults] == [("unreadable", "0")]
    assert second.faults == ()
    driver.errors.clear()
    assert nvml.sample().cards[0].values["used_gb"] == 28.0


def test_a_driver_that_was_reloaded_between_two_samples_is_taken_up_at_once(driver: FakeNvml, nvml: Nvml) -> None:
    nvml.sample()
    driver.unload()
    driver.loaded = True
    sample = nvml.sample()
    assert [card.values["used_gb"] for card in sample.cards] == [28.0, 28.0]
    assert [fault.kind for fault in sample.faults] == ["driver_reload"]
    assert nvml.sample().faults == ()


def test_a_driver_that_is_away_for_a_while_is_taken_up_when_it_is_back(driver: FakeNvml, nvml: Nvml) -> None:
    nvml.sample()
    driver.unload()
    for _ in range(2):
        with pytest.raises(SourceError, match="driver is not loaded"):
            nvml.sample()
    driver.loaded = True
    nvml.open(frozenset())
    assert [fault.kind for fault in nvml.sample().faults] == ["driver_reload"]


def test_a_driver_of_another_version_needs_a_restart(driver: FakeNvml, nvml: Nvml) -> None:
    driver.unload()
    driver.loaded, driver.replaced = True, True
    with pytest.raises(SourceError, match="restart verlwatch"):
        nvml.sample()


def test_a_driver_that_goes_within_the_sample_is_no_crash(driver: FakeNvml, nvml: Nvml) -> None:
    driver.errors["nvmlDeviceGetPowerUsage", 1] = DRIVER_NOT_LOADED
    with pytest.raises(SourceError, match="does not stay"):
        nvml.sample()


def test_mig_instances_have_the_memory_and_their_card_the_sensors(driver: FakeNvml, nvml: Nvml) -> None:
    driver.cards[1].parts = {
        0: FakePart("MIG-a", used=3 * GIB, processes=[(4711, 2 * GIB)]),
        2: FakePart("MIG-b", "2g.20gb", used=GIB, total=20 * GIB),
    }
    plain, card, *parts = nvml.sample().cards
    assert plain.values["used_gb"] == 28.0
    assert (card.gpu, card.processes) == ("1", ())
    assert not {"used_gb", "total_gb", "utilization"} & card.values.keys()
    assert card.values["temperature_c"] == 61.0
    assert [(part.gpu, part.values["mig"], part.values["used_gb"]) for part in parts] == [
        ("1:0", "1g.10gb", 3.0),
        ("1:2", "2g.20gb", 1.0),
    ]
    assert parts[0].processes == (Process(4711, 2.0),)


def test_xids_are_told_as_they_come(driver: FakeNvml, nvml: Nvml) -> None:
    assert nvml.sample().faults == ()
    driver.xids = [(1, 79), (0, 48)]
    assert nvml.sample().faults == (Fault("xid", "Xid 79", "1"), Fault("xid", "Xid 48", "0"))
    assert nvml.sample().faults == ()


def test_without_events_the_rest_goes_on() -> None:
    driver = FakeNvml(*cards(1))
    driver.errors["nvmlEventSetCreate", None] = NOT_SUPPORTED
    with loaded(driver):
        source = Nvml()
        source.open(frozenset())
        assert source.sample().cards[0].values["used_gb"] == 28.0
        source.close()


def test_cards_to_avoid_are_not_asked(driver: FakeNvml) -> None:
    source = Nvml()
    source.open(frozenset({"0"}))
    sample = source.sample()
    assert ([card.gpu for card in sample.cards], sample.faults) == (["1"], ())
    source.close()
