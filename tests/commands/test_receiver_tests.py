"""`test-notify`: a sample that is like what comes, fresh each time, and open nowhere afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pagerduty import ROUTING_KEY, FakePagerDuty
from verlwatch.cli import main
from verlwatch.commands.test_notify import _tell
from verlwatch.shell.notifiers import sample_message
from verlwatch.shell.notifiers.pagerduty import PagerDutyConfig

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0


async def test_what_calls_somebody_is_resolved_after_the_test(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(ROUTING_KEY)
    async with FakePagerDuty() as server:
        config = PagerDutyConfig.model_validate(
            {"name": "pd", "type": "pagerduty", "url": server.url, "routing_key_file": str(tmp_path / "key")}
        )
        assert await _tell(config, NOW, "http://watch.example", dry_run=False) == 0
        assert await _tell(config, NOW + 60, "http://watch.example", dry_run=False) == 0
        assert server.alerts == {"sample-1800000000": "resolved", "sample-1800000060": "resolved"}
        assert server.opened == 2
    assert [event["event_action"] for event in server.events] == ["trigger", "resolve"] * 2
    assert server.events[0]["payload"]["timestamp"].startswith("2027-01-15T08:00:00")
    assert server.events[0]["client_url"] == "http://watch.example"


def test_the_sample_has_what_a_real_message_has() -> None:
    message = sample_message(NOW, "http://watch.example")
    facts = dict(message.facts)
    assert {"Likely cause", "Configured", "Lost so far"} <= facts.keys()
    assert "GPU-hours" in facts["Lost so far"]
    assert "verlwatch silence add" in message.advice[-1]
    assert f"verlwatch accept {message.incident}" in message.advice[-1]
    assert (message.at, message.opened_at, message.link) == (NOW, NOW, "http://watch.example")


def test_a_dry_run_shows_the_link_that_is_configured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "verlwatch.yaml"
    config.write_text(
        "external_url: https://watch.example\nreceivers: [{name: hook, type: webhook, url: 'http://127.0.0.1:9/'}]\n"
    )
    assert main(["test-notify", "--dry-run", "--config", str(config)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["link"] == "https://watch.example"
    assert shown["incident"].startswith("sample-")
    assert shown["dedup_key"] == f"{shown['incident']}-1"
