"""Dead letters are shown, sent again and let go of, while the daemon runs and while it does not."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Self

from aiohttp import web

from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink
from tests.daemon.test_live import run_to_end

CANARY = "canary-ping-55b0"

MESSAGES = 10
"""That the recorded run causes; while one commit is being counted a status may show more for a moment."""


def configured(home: Path, sink: Sink, log: Path, more: str = "") -> tuple[str | Path, ...]:
    file = home / "verlwatch.yaml"
    file.write_text(
        f"runs: [{{name: qwen, logs: ['{log}'], from: beginning}}]\nstate_dir: {home / 'state'}\n"
        f"receivers: [{{name: team, type: webhook, url: '{sink.url}'}}]\nlogging: {{level: debug}}\n{more}"
    )
    return ("--config", file)


async def test_dead_letters_are_sent_again_through_the_daemon_once_the_receiver_is_mended(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log = recorded / "verl-0.4.1.debug.driver.log"
    config = configured(tmp_path, sink, log)
    sink.status = 404
    daemon = await start(*config)
    status = await daemon.caught_up(log)
    dead = status["receivers"][0]["dead"]
    assert dead > 3
    assert "receiver team refused the last message" in str(status["not_ready"])

    code, said = await run_to_end("outbox", "list", *config)
    assert (code, said.count(" dead ")) == (0, dead), said
    assert "the receiver answered 404" in said

    sink.status = 200
    first = re.findall(r"^ *(\d+)  dead", said, re.MULTILINE)[0]
    assert await run_to_end("outbox", "retry", first, *config) == (0, f"to be sent again: {first}\n")
    await daemon.caught_up(log)
    code, said = await run_to_end("outbox", "retry", "--all", *config)
    assert code == 0, said
    status = await daemon.until(lambda s: s["receivers"][0]["delivered"] == dead)
    assert (status["receivers"][0]["dead"], status["not_ready"]) == (0, [])
    assert len(sink.received) == len({key for _, key, _ in sink.received}) == dead
    assert await run_to_end("outbox", "list", *config) == (0, "nothing waits, and nothing was given up\n")
    code, said = await run_to_end("outbox", "retry", first, *config)
    assert (code, first in said) == (1, True), "it is no dead letter any more"


async def test_without_a_daemon_the_database_is_opened_and_what_waits_is_told_from_the_first_answer(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log = recorded / "verl-0.4.1.debug.driver.log"
    config = configured(tmp_path, sink, log)
    sink.status = 503
    sink.headers = {"Retry-After": "3600"}
    daemon = await start(*config)
    status = await daemon.until(
        lambda s: s["sources"][0]["position"] == log.stat().st_size and s["receivers"][0]["pending"] == MESSAGES
    )
    waiting = status["receivers"][0]
    await daemon.kill()

    code, said = await run_to_end("outbox", "list", *config)
    assert (code, said.count(" pending ")) == (0, waiting["pending"]), said
    first = said.split()[0]
    assert await run_to_end("outbox", "drop", first, *config) == (0, f"dropped: {first}\n")
    code, said = await run_to_end("outbox", "drop", first, *config)
    assert (code, first in said) == (1, True)

    daemon = await start(*config)
    assert (await daemon.status())["receivers"][0]["pending"] == waiting["pending"] - 1


async def test_no_database_is_made_where_none_is(tmp_path: Path, sink: Sink) -> None:
    config = configured(tmp_path, sink, tmp_path / "a.log")
    code, said = await run_to_end("outbox", "list", *config)
    assert (code, "holds no database" in said) == (1, True)
    assert not (tmp_path / "state").exists()


class Snitch:
    """Counts pings at a secret path."""

    def __init__(self) -> None:
        self.pings = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get(f"/{CANARY}", self._ping)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/{CANARY}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _ping(self, _: web.Request) -> web.Response:
        await asyncio.sleep(0)
        self.pings += 1
        return web.Response()


async def test_the_heartbeat_goes_on_while_every_log_is_readable_and_its_url_is_told_nowhere(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log, gone = recorded / "verl-0.4.1.debug.driver.log", tmp_path / "b.log"
    (tmp_path / "ping").write_text("")
    async with Snitch() as snitch:
        (tmp_path / "ping").write_text(snitch.url)
        heartbeat = f"heartbeat: {{url_file: '{tmp_path / 'ping'}', every: 1s}}\n"
        daemon = await start(*configured(tmp_path, sink, log, heartbeat))
        status = await daemon.until(lambda s: s["heartbeat"]["sent"] >= 3)
        assert snitch.pings >= status["heartbeat"]["sent"]
        shown = [await daemon.get(path) for path in ("/api/v1/status", "/metrics", "/")]
        assert "verlwatch_heartbeat_withheld 0.0" in shown[1]
        configured(tmp_path, sink, gone, heartbeat)
        daemon.process.send_signal(1)
        status = await daemon.until(lambda s: bool(s["heartbeat"]["withheld"]))
        assert status["heartbeat"]["withheld"][0].startswith(str(gone)), "a log that was never seen is not readable"
        pings = snitch.pings
        await asyncio.sleep(1.5)
        assert snitch.pings == pings
        code, said = await run_to_end("status", "--config", tmp_path / "verlwatch.yaml")
        assert (code, "heartbeat: WITHHELD" in said) == (1, True)
        assert await daemon.stop() == 0
    assert CANARY not in f"{shown}{status}{said}{''.join(daemon.output)}"
