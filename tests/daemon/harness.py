"""The real daemon as a child process, a log that grows, and a webhook receiver that keeps what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

LIMIT_S = 60.0


def told_whole(arguments: tuple[str | Path, ...]) -> tuple[str, ...]:
    """A log that is named by a flag is told whole unless the test says otherwise."""
    return ("--from", "beginning") if "--log" in arguments and "--from" not in arguments else ()


class Daemon:
    """`verlwatch run` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, output: list[str]) -> None:
        self.process = process
        self.url = url
        self.output = output

    @classmethod
    async def start(
        cls,
        *arguments: str | Path,
        env: dict[str, str] | None = None,
        open_files: int | None = None,
        through: tuple[str, ...] = (),
        command: str = "run",
    ) -> Daemon:
        """Starts it on a free port and returns once it says that it watches.

        ``open_files`` is its hard limit, ``through`` a command that becomes it.

        Raises:
            AssertionError: it ended instead; the text holds what it printed.
        """
        limited = () if open_files is None else ("prlimit", f"--nofile={open_files}:{open_files}")
        process = await asyncio.create_subprocess_exec(
            *through, *limited, sys.executable, "-m", "verlwatch", command,
            "--http-listen", "127.0.0.1:0", "--log-format", "json",
            *told_whole(arguments),
            *map(str, arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            limit=1 << 20,
        )  # fmt: skip
        output: list[str] = []
        url = ""
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace")
            output.append(text)
            if found := re.search(r"http://127\.0\.0\.1:\d+/", text):
                url = found.group()
            if '"event":"watching"' in text.replace(" ", ""):
                return cls(process, url, output)
        await process.wait()
        raise AssertionError(f"the daemon ended with {process.returncode}:\n{''.join(output)}")

    async def get(self, path: str) -> Any:
        """The JSON (or text) at a path of its HTTP server."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rsplit(":", 1)[1].strip("/")))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        body = (await reader.read()).split(b"\r\n\r\n", 1)[1]
        writer.close()
        with suppress(ValueError):
            return json.loads(body)
        return body.decode()

    async def status(self) -> dict[str, Any]:
        status: dict[str, Any] = await self.get("/api/v1/status")
        return status

    async def caught_up(self, *logs: Path) -> dict[str, Any]:
        """The status once every byte of ``logs`` has been judged and every message delivered."""

        def is_done(status: dict[str, Any]) -> bool:
            at = {source["source"]: source["position"] for source in status["sources"]}
            return all(at.get(str(log)) == log.stat().st_size for log in logs) and not any(
                receiver["pending"] for receiver in status["receivers"]
            )

        return await self.until(is_done)

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status for which ``holds``.

        Raises:
            AssertionError: none within LIMIT_S.
        """
        ends = time.monotonic() + LIMIT_S
        while time.monotonic() < ends:
            status = await self.status()
            with suppress(IndexError):  # there is no source, run or receiver yet
                if holds(status):
                    return status
            await asyncio.sleep(0.05)
        raise AssertionError(f"never came true; last status: {json.dumps(status, indent=1)}")

    async def stopped(self) -> None:
        """Returns once SIGSTOP has reached every thread."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        while {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()} != {"T"}:
            await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """SIGKILL, as the kernel's out-of-memory killer would."""
        self.process.kill()
        await self._gone()

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self._gone()

    async def _gone(self) -> int:
        rest, _ = await self.process.communicate()
        self.output.append(rest.decode(errors="replace"))
        assert self.process.returncode is not None
        return self.process.returncode

    def fill_disk(self) -> None:
        """Every write of the daemon to a file fails from now on."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def free_disk(self) -> None:
        """There is space again."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    async def said(self, words: str) -> str:
        """The line of its log that holds ``words``: one that was read already, or the first to come."""
        assert self.process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            while not (found := [line for line in self.output if words in line]):
                self.output.append((await self.process.stdout.readline()).decode(errors="replace"))
        return found[0]

    def rss_mb(self) -> float:
        """Resident memory in megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Sink:
    """A webhook receiver: keeps (arrival, id, body), answers as told."""

    def __init__(self) -> None:
        self.received: list[tuple[float, str, dict[str, Any]]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.url = ""
        self.asked = asyncio.Event()
        self.asked_for: list[str] = []
        self.answers = asyncio.Event()
        """Set unless requests are to be left without an answer."""
        self.answers.set()
        app = web.Application(middlewares=[self._note])
        app.router.add_post("/hook", self._take)
        self.runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.answers.set()
        await self.runner.cleanup()

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.asked_for.append(request.path)
        return await handler(request)

    async def _take(self, request: web.Request) -> web.Response:
        arrived = time.monotonic()
        body = orjson.loads(await request.read())
        self.asked.set()
        await self.answers.wait()
        if self.status == 200:
            self.received.append((arrived, request.headers["X-Verlwatch-Id"], body))
        return web.Response(status=self.status, headers=self.headers)

    def told(self) -> set[tuple[str, str]]:
        """(idempotency id, reason) of everything taken."""
        return {(key, body["reason"]) for _, key, body in self.received}


def projection(state_dir: Path) -> dict[str, Any]:
    """What must be the same however often the daemon was killed: all but the times at which things happened."""
    connection = sqlite3.connect(f"file:{state_dir / 'state.db'}?mode=ro", uri=True)
    try:

        def rows(sql: str) -> list[Any]:
            return connection.execute(sql).fetchall()

        return {
            "cursors": rows("SELECT source, generation, reread_from, applied_to, mark FROM cursor ORDER BY 1"),
            "states": {
                (kind, key): (version, _timeless(json.loads(data)))
                for kind, key, version, data in rows("SELECT kind, key, version, data FROM state ORDER BY 1, 2")
            },
            "steps": [
                (run, attempt, step, bytes(data))
                for run, attempt, step, data in rows("SELECT run, attempt, step, data FROM step ORDER BY 1, 2, 3")
            ],
            "transitions": [
                _timeless(json.loads(data)) for (data,) in rows("SELECT data FROM transition ORDER BY rowid")
            ],
            "outbox": rows("SELECT dedup_key, reason, status FROM outbox ORDER BY 1"),
        }
    finally:
        connection.close()


BY_ARRIVAL = frozenset({"clocks", "pace", "past", "stages", "hosts", "used", "disks"})
"""What is made of the times at which lines came, and what was seen of the host meanwhile."""


def _is_by_arrival(key: str) -> bool:
    return key.endswith("_at") or key in BY_ARRIVAL or key.startswith("host:")  # a series of `core.outlook`


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not _is_by_arrival(key)}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
