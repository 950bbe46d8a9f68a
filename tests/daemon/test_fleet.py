"""A run on several hosts: agents that read, a hub that judges, and what may happen between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Starter
from tests.daemon.harness import Daemon, Sink

NAMES = ("n1", "n2")


class Fleet:
    """A hub, its agents, and the files that these read."""

    def __init__(self, folder: Path, start: Starter, sink: Sink) -> None:
        self.folder = folder
        self.start = start
        self.hub_yaml = folder / "hub.yaml"
        agents = []
        for name in NAMES:
            token = folder / f"{name}.token"
            token.write_text(f"token-of-{name}\n")
            token.chmod(0o600)
            agents.append(f"{{name: {name}, token_file: {token}}}")
        self.hub_yaml.write_text(
            f"hub: {{agents: [{', '.join(agents)}]}}\nreceivers: [{{name: hook, type: webhook, url: '{sink.url}'}}]\n"
        )

    async def hub(self, *more: str) -> Daemon:
        self.the_hub = await self.start("--config", self.hub_yaml, "--state-dir", self.folder / "hub", *more)
        return self.the_hub

    async def agent(self, name: str, *logs: Path, url: str | None = None, token: str | None = None) -> Daemon:
        named = [part for log in logs for part in ("--log", log)]
        return await self.start(
            *named, "--run-name", "qwen", "--from", "beginning", "--name", name,
            "--hub", url or self.the_hub.url, "--token-file", self.folder / f"{token or name}.token",
            "--state-dir", self.folder / name, command="agent",
        )  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path, start: Starter, sink: Sink) -> Fleet:
    return Fleet(tmp_path, start, sink)


def told(sink: Sink) -> list[tuple[str, str, int]]:
    return [(body["phase"], body["reason"], body["onset_step"]) for _, _, body in sink.received]


WHOLE = [
    ("gen", "opened", 120), ("gen", "escalated", 120), ("gen", "resolved", 120), ("old_log_prob", "opened", 150),
    ("old_log_prob", "resolved", 150), ("gen", "opened", 200), ("losses", "opened", 260), ("losses", "resolved", 260),
    ("gen", "run ended", 200), ("run", "finished", 300),
]  # fmt: skip


async def taken(hub: Daemon) -> dict[str, Any]:
    """The status once the whole run is judged: its end stands in another file than its last step may come from."""
    return await hub.until(
        lambda s: (
            [(run["name"], run["step"], run["state"]) for run in s["runs"]] == [("qwen", 300, "finished")]
            and not any(agent["waiting"] for agent in s["agents"])
            and not any(receiver["pending"] for receiver in s["receivers"])
        )
    )


async def test_the_driver_on_one_host_and_the_file_log_on_another_are_one_run(
    recorded: Path, tmp_path: Path, fleet: Fleet, sink: Sink
) -> None:
    console, jsonl = tmp_path / "train.log", tmp_path / "qwen.jsonl"
    hub = await fleet.hub()
    agents = [await fleet.agent("n1", console), await fleet.agent("n2", jsonl)]
    console.write_bytes((recorded / "verl-0.9.1.numpy2.nocolor.driver.log").read_bytes())
    jsonl.write_bytes((recorded / "verl-0.9.1.file_logger.jsonl").read_bytes())
    status = await taken(hub)
    assert (status["runs"][0]["attempt"], status["runs"][0]["steps_seen"]) == (1, 300)
    assert told(sink)[0][:2] == ("gen", "opened")
    assert [row for row in told(sink) if row[1] in {"opened", "resolved", "run ended"}] == [
        row for row in WHOLE if row[1] in {"opened", "resolved", "run ended"}
    ]
    assert [(a["name"], a["lost"], a["thinned"], a["sources"]) for a in status["agents"]] == [
        ("n1", 0, 0, 1), ("n2", 0, 0, 1),
    ]  # fmt: skip
    for daemon in (*agents, hub):
        assert await daemon.stop() == 0


async def test_what_was_read_while_the_hub_was_away_arrives_later(
    recorded: Path, tmp_path: Path, fleet: Fleet, sink: Sink
) -> None:
    log = tmp_path / "train.log"
    hub = await fleet.hub()
    url = hub.url
    agent = await fleet.agent("n1", log)
    await hub.kill()
    log.write_bytes((recorded / "verl-0.4.1.debug.driver.log").read_bytes())
    await agent.until(lambda s: s["sources"][0]["position"] == log.stat().st_size)
    await agent.kill()
    hub = await fleet.hub("--http-listen", url.removeprefix("http://").rstrip("/"))
    agent = await fleet.agent("n1", log)
    await taken(hub)
    assert told(sink) == WHOLE
    assert await agent.stop() == 0
    assert await hub.stop() == 0


async def test_a_token_that_is_wrong_or_another_agents_is_refused_until_it_is_right(
    recorded: Path, tmp_path: Path, fleet: Fleet, sink: Sink
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    hub = await fleet.hub()
    (tmp_path / "bad.token").write_text("nobody's")
    (tmp_path / "bad.token").chmod(0o600)
    stranger = await fleet.agent("n1", log, token="bad")
    await stranger.until(lambda s: "answered 401" in (s["receivers"][0]["last_error"] or ""))
    (tmp_path / "bad.token").write_text("token-of-n2")
    await stranger.until(lambda s: "answered 403" in (s["receivers"][0]["last_error"] or ""))
    assert (await hub.status())["runs"] == []
    (tmp_path / "bad.token").write_text("token-of-n1")
    await taken(hub)
    assert len(told(sink)) == len(WHOLE)
