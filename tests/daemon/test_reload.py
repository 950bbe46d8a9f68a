"""SIGHUP: what changes, what stays, and what a reload must survive."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import aiohttp

from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink
from verlwatch.app import App
from verlwatch.config import Config
from verlwatch.status import ConfigStatus


async def test_with_a_full_disk_the_daemon_goes_on_and_clears_away_later(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    config = tmp_path / "verlwatch.yaml"
    config.write_text(
        "runs: [{from: beginning, logs: [train.log]}]\n"
        f"receivers: [{{name: hook, type: webhook, url: '{sink.url}'}}]\n"
    )
    sink.status = 503
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    await daemon.until(lambda s: bool(s["receivers"]) and s["receivers"][0]["pending"] >= 6)

    daemon.fill_disk()
    config.write_text("runs: [{logs: [train.log], from: beginning}]\n")
    daemon.process.send_signal(signal.SIGHUP)
    status = await daemon.until(lambda s: all(one["type"] == "no longer configured" for one in s["receivers"]))
    assert status["config"]["reload_ok"]
    await daemon.said("not cleared away")

    daemon.free_disk()
    daemon.process.send_signal(signal.SIGHUP)
    await daemon.until(lambda _: _pending(tmp_path / "state") == 0)
    assert await daemon.stop() == 0


def _pending(state_dir: Path) -> int:
    connection = sqlite3.connect(f"file:{state_dir / 'state.db'}?mode=ro", uri=True)
    try:
        count: int = connection.execute("SELECT count(*) FROM outbox WHERE status = 'pending'").fetchone()[0]
    finally:
        connection.close()
    return count


async def test_what_needs_a_restart_stays_as_it_was_and_is_named_at_every_reload(
    tmp_path: Path, start: Starter
) -> None:
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{logs: [train.log], from: beginning}]\n")
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    for limit in (7, 8):
        config.write_text(
            "runs: [{from: beginning, logs: [train.log]}]\n"
            f"logging: {{level: error}}\nreading: {{max_files: {limit}}}\n"
        )
        daemon.process.send_signal(signal.SIGHUP)
        said = json.loads(await daemon.said("configuration reloaded"))
        assert said["restart_needed"] == ["logging.level"]
        assert said["changed"] == ["reading.max_files"]
        daemon.output.clear()
    assert await daemon.stop() == 0
    assert "stopped" in "".join(daemon.output), "the old level is still in force"


async def test_a_secret_that_was_replaced_stays_hidden(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    secret = tmp_path / "token"
    secret.write_text("old-token-of-http")
    log = tmp_path / "train.log"
    config = tmp_path / "verlwatch.yaml"
    config.write_text(
        "runs: [{name: r, from: beginning, logs: [train.log]}]\n"
        f"receivers: [{{name: hook, type: webhook, url: '{sink.url}', secret_file: token}}]\n"
    )
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    secret.write_text("new-token-of-http")
    config.write_text(config.read_text().replace("name: r,", "name: old-token-of-http,"))
    daemon.process.send_signal(signal.SIGHUP)
    await daemon.until(lambda s: [source["run"] for source in s["sources"]] == ["old-token-of-http"])
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    line = await daemon.said('"incident"')
    assert json.loads(line)["run"] == "[secret]"
    assert await daemon.stop() == 0


async def test_what_was_delivered_is_counted_on(recorded: Path, tmp_path: Path, start: Starter, sink: Sink) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    config = tmp_path / "verlwatch.yaml"
    config.write_text(
        "runs: [{from: beginning, logs: [train.log]}]\n"
        f"receivers: [{{name: hook, type: webhook, url: '{sink.url}'}}]\n"
    )
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    delivered = (await daemon.caught_up(log))["receivers"][0]["delivered"]
    assert delivered >= 6
    daemon.process.send_signal(signal.SIGHUP)
    await daemon.said("configuration reloaded")
    assert (await daemon.status())["receivers"][0]["delivered"] == delivered
    assert await daemon.stop() == 0


async def test_a_run_that_is_no_longer_configured_is_no_longer_shown(
    recorded: Path, tmp_path: Path, start: Starter
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.1.locallogger.log").read_bytes())
    config = tmp_path / "verlwatch.yaml"
    config.write_text("runs: [{logs: [train.log], from: beginning}, {name: other, logs: [other.log]}]\n")
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    await daemon.until(lambda s: [run["name"] for run in s["runs"]] == ["train"] and s["runs"][0]["step"] == 299)
    config.write_text("runs: [{name: other, logs: [other.log]}]\n")
    daemon.process.send_signal(signal.SIGHUP)
    await daemon.until(lambda s: s["runs"] == [] and [source["run"] for source in s["sources"]] == ["other"])
    assert "train" not in await daemon.get("/metrics")


async def test_a_log_that_cannot_be_read_is_told_in_our_own_log_too(tmp_path: Path, start: Starter) -> None:
    (tmp_path / "folder.log").mkdir()
    daemon = await start("--log", tmp_path / "folder.log", "--state-dir", tmp_path / "state")
    await daemon.said('"state":"not a regular file"')


async def test_no_error_of_a_reload_ends_the_daemon_or_changes_anything(tmp_path: Path, start: Starter) -> None:
    config = tmp_path / "verlwatch.yaml"
    good = "runs: [{logs: [train.log], from: beginning}]\n"
    config.write_text(good)
    daemon = await start("--config", config, "--state-dir", tmp_path / "state")
    skipped = "maintenance: [{when: 2026-03-29 02:30 to 2026-03-29 03:10}]\n"
    config.write_text(f"{good}timezone: Europe/Berlin\n{skipped}")
    daemon.process.send_signal(signal.SIGHUP)
    status = await daemon.until(lambda s: not s["config"]["reload_ok"])
    assert "there is no 2026-03-29 02:30 in Europe/Berlin" in status["config"]["error"]
    config.write_text(good)
    daemon.process.send_signal(signal.SIGHUP)
    await daemon.until(lambda s: s["config"]["reload_ok"])
    assert await daemon.stop() == 0


async def test_an_error_that_nobody_has_thought_of_ends_no_daemon_either() -> None:
    def reread() -> Config:
        raise OverflowError("not thought of")

    app = App(Config(), None, reread, port_chosen=False)
    overview = SimpleNamespace(config=ConfigStatus(path=None, loaded_at=0.0))
    vars(app)["_overview"] = overview
    vars(app)["_reload_wanted"].set()
    async with asyncio.TaskGroup() as tasks, aiohttp.ClientSession() as session:
        reloading = tasks.create_task(vars(App)["_reloads"](app, tasks, session))
        while overview.config.reload_ok:
            await asyncio.sleep(0)
        assert not reloading.done()
        reloading.cancel()
    assert overview.config.error == "not thought of"
