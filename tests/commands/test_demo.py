"""The demo keeps its promise, and says so when it does not."""

from __future__ import annotations

import re

import pytest

from verlwatch.cli import main
from verlwatch.commands import demo


def test_the_demo_tells_of_everything_it_promises_through_the_real_daemon(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--pace", "80"]) == 0
    said = capfd.readouterr().out
    at = [re.search(promise, said) for promise in demo.PROMISED]
    assert all(at)
    assert [found.start() for found in at if found] == sorted(found.start() for found in at if found)
    assert "status page: http://127.0.0.1:" in said


def test_a_demo_whose_messages_do_not_come_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(demo, "_pieces", lambda: iter([(1, b"step:1 - timing_s/gen:1.0 - timing_s/step:2.0\n")]))
    assert main(["demo", "--pace", "1000"]) == 1
    assert "did not come" in capfd.readouterr().err


def test_a_message_that_repeats_another_fulfils_no_promise() -> None:
    receiver = demo._Receiver()
    receiver.headlines = ["gen took ×4.00 at step 120"] * len(demo.PROMISED)
    assert receiver.missing() == list(demo.PROMISED[1:])


@pytest.mark.parametrize("pace", ["0", "-1", "nan", "inf", "fast"])
def test_a_pace_is_a_number_of_steps(pace: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["demo", f"--pace={pace}"])
    assert end.value.code == 2
    assert pace in capsys.readouterr().err
