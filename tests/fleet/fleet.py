"""A hub and eight agents, each on a host of its own, with the files of five runs; and what they have in the end."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.conftest import DATA, SOAK
from tests.daemon.harness import Daemon, Sink, projection
from tests.fleet.network import Host, Network
from verlwatch.core.rules import MEMORY_RULES

HUB = "hub"
HUB_PORT, SINK_PORT = 9878, 9000
STATUS_TOKEN = "for-the-status-page"
WORKERS = "ray_session/worker-{}.gz"
FILES = {
    "n1": ("qwen", "verl-0.9.1.numpy2.nocolor.driver.log.gz"),
    "n2": ("qwen", "verl-0.9.1.file_logger.jsonl.gz"),
    "n3": ("qwen", WORKERS.format("7dad7f76971cd9b804d10ca81da86dd4754a5b2e21b7e694ab790fce-01000000-10543.err")),
    "n4": ("qwen", WORKERS.format("c89f6c5df2507aabebe1d67cdbfe9f32f752f1604f0bc46b6ce7f338-01000000-10596.err")),
    "n5": ("early", "verl-0.3.0.post1.driver.log.gz"),
    "n6": ("debug", "verl-0.4.1.debug.driver.log.gz"),
    "n7": ("ranks", "verl-0.4.1.allranks-debug.nodedup.driver.log.gz"),
    "n8": ("old", "verl-0.1.locallogger.log.gz"),
}
"""Host -> run, and the recorded file that grows there: the driver's, the file logger's and two workers' of one run."""
RUNS = sorted({run for run, _ in FILES.values()})
LIMIT_S = 600.0 if SOAK else 60.0
SKEW = Path(__file__).parent / "skew"


class Remote(Daemon):
    """The real daemon on a host of its own."""

    host: Host
    address: str
    port: int

    @classmethod
    async def on(cls, host: Host, command: str, *arguments: str | Path, skew_s: float = 0.0) -> Self:
        """Starts it there, by a clock that is ``skew_s`` ahead."""
        env = {"PYTHONPATH": str(SKEW), "SKEW_S": str(skew_s)} if skew_s else None
        daemon = await cls.start(*arguments, command=command, through=host.enter, env=env)
        assert isinstance(daemon, cls)
        daemon.host = host
        daemon.address = "127.0.0.1" if daemon.url else host.address
        daemon.port = int(daemon.url.rsplit(":", 1)[1].strip("/")) if daemon.url else HUB_PORT
        return daemon

    async def get(self, path: str) -> Any:
        reader, writer = await asyncio.open_connection(sock=self.host.connect(self.address, self.port))
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {self.address}:{self.port}\r\nConnection: close\r\n"
            f"Authorization: Bearer {STATUS_TOKEN}\r\n\r\n".encode()
        )
        body = (await reader.read()).split(b"\r\n\r\n", 1)[1]
        writer.close()
        return json.loads(body)


class Fleet:
    """Everything in ``folder``; ``skews``: by how many seconds an agent's clock is ahead."""

    def __init__(self, network: Network, folder: Path, skews: dict[str, float] | None = None) -> None:
        self.network = network
        self.folder = folder
        self.sink = Sink()
        self.daemons: dict[str, Remote] = {}
        self.skews = skews or {}
        self._texts = {name: gzip.decompress((DATA / file).read_bytes()) for name, (_, file) in FILES.items()}
        self._written = dict.fromkeys(FILES, 0)
        folder.mkdir()
        self._secret("status", STATUS_TOKEN)
        for name in FILES:
            self._secret(name, f"token-of-{name}")
            self._secret(f"{name}-on-hub", f"token-of-{name}")
            self.log(name).touch()
        agents = ", ".join(f"{{name: {name}, token_file: {folder / name}-on-hub.token}}" for name in FILES)
        (folder / "hub.yaml").write_text(
            f"http: {{listen: '0.0.0.0:{HUB_PORT}', token_file: {folder}/status.token, allowed_hosts: [10.77.0.1]}}\n"
            f"hub: {{plain_http: allowed, agents: [{agents}]}}\n"
            f"receivers: [{{name: hook, type: webhook, url: 'http://127.0.0.1:{SINK_PORT}/hook'}}]\n"
        )

    async def __aenter__(self) -> Self:
        hub = self.network.hosts[HUB]
        await self.sink.__aenter__()
        await web.SockSite(self.sink.runner, hub.listen("127.0.0.1", SINK_PORT)).start()
        await self.start(HUB)
        await asyncio.gather(*(self.start(name) for name in FILES))
        return self

    async def __aexit__(self, *_: object) -> None:
        for daemon in self.daemons.values():
            if daemon.process.returncode is None:
                await daemon.kill()
        await self.sink.__aexit__()

    @property
    def hub(self) -> Remote:
        return self.daemons[HUB]

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    async def start(self, name: str) -> None:
        """Starts the hub, or an agent, on its host."""
        if name == HUB:
            arguments: tuple[str | Path, ...] = (
                "--config",
                self.folder / "hub.yaml",
                "--http-listen",
                f"0.0.0.0:{HUB_PORT}",
            )
        else:
            arguments = (
                "--hub", f"http://{self.network.hosts[HUB].address}:{HUB_PORT}", "--agent-plain-http", "allowed",
                "--token-file", self.folder / f"{name}.token", "--name", name, "--log", self.log(name),
                "--run-name", FILES[name][0],
            )  # fmt: skip
        self.daemons[name] = await Remote.on(
            self.network.hosts[name], "run" if name == HUB else "agent", *arguments,
            "--state-dir", self.folder / f"{name}-state", skew_s=self.skews.get(name, 0.0),
        )  # fmt: skip

    async def kill(self, name: str) -> None:
        """SIGKILL, and a new start."""
        await self.daemons[name].kill()
        await self.start(name)

    def write(self, share: float, names: Iterable[str] = FILES) -> None:
        """Files grow to ``share`` of what they will have; one may end in the middle of a line."""
        for name in names:
            text = self._texts[name]
            end = round(len(text) * share)
            with self.log(name).open("ab") as file:
                file.write(text[self._written[name] : end])
            self._written[name] = end

    def give_tokens(self, on_hub: str, on_agents: str) -> None:
        """Writes the tokens; ``{}`` stands for an agent's name.  The hub reads its own with SIGHUP."""
        for name in FILES:
            self._secret(f"{name}-on-hub", on_hub.format(name, name))
            self._secret(name, on_agents.format(name))
        self.hub.process.send_signal(signal.SIGHUP)

    async def settled(self) -> dict[str, Any]:
        """The hub's status once it has judged and told everything that was written."""
        async with asyncio.timeout(LIMIT_S):
            while not all([self._is_read(name, await self.daemons[name].status()) for name in FILES]):
                await asyncio.sleep(0.1)
            status = await self.hub.status()
            while any(receiver["pending"] for receiver in status["receivers"]):
                await asyncio.sleep(0.1)
                status = await self.hub.status()
        return status

    def _is_read(self, name: str, status: dict[str, Any]) -> bool:
        at = [source["position"] for source in status["sources"]]
        return at == [self._written[name]] and not status["receivers"][0]["pending"]

    async def stop(self) -> None:
        """SIGTERM to all, the hub last; each must end well."""
        for name in (*FILES, HUB):
            assert await self.daemons[name].stop() == 0, name

    def read(self) -> bool:
        """Whether every agent has read its file to the end, and given all of it away."""
        return all(
            [cursor[3] for cursor in projection(self.folder / f"{name}-state")["cursors"]] == [len(text)]
            and not waiting(self.folder / f"{name}-state")
            for name, text in self._texts.items()
        )

    def told(self) -> set[tuple[str, str]]:
        """Ids and reasons of the messages about runs."""
        return {(key, body["reason"]) for _, key, body in self.sink.received if not body["run"].startswith("agent ")}

    def _secret(self, name: str, text: str) -> None:
        file = self.folder / f"{name}.token"
        new = file.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
        new.replace(file)


BY_TURN = frozenset(rule.NAME for rule in MEMORY_RULES)
"""Rules that are asked as time passes, too: how large what they found was last depends on when that was."""


def outcome(hub_state: Path) -> dict[str, str]:
    """What a hub must have of its runs whatever happened: all but times, and the numbers of shipments."""
    hub = projection(hub_state)
    states = {key: state for key, state in hub["states"].items() if key[0] != "agent"}
    for _, data in states.values():
        data.pop("hardware", None)  # cards are seen as time passes, and as files of one run come in turn
        data.get("life", {}).pop("source", None)  # whoever told of the last step
        if "attempts" in data:
            data["attempts"]["views"].sort()  # whoever was heard first
    parts = {
        "states": states,
        "steps": [(*key, json.loads(data)) for *key, data in hub["steps"]],
        "transitions": [
            [one for one in hub["transitions"] if one["run"] == run and one["rule"] not in BY_TURN] for run in RUNS
        ],
    }
    return {part: repr(_plain(value)).replace(str(hub_state.parent), "FLEET") for part, value in parts.items()}


def _plain(value: Any) -> Any:
    """Whole numbers as the others: a file log writes 1 where the console prints 1.0."""
    if isinstance(value, dict):
        return sorted((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, int) else value


def waiting(state_dir: Path) -> int:
    """Shipments that an agent still holds."""
    with closing(sqlite3.connect(f"file:{state_dir / 'state.db'}?mode=ro", uri=True)) as sql:
        (count,) = sql.execute("SELECT count(*) FROM shipment").fetchone()
        return int(count)
