"""`verlwatch demo`: the real daemon on a recorded run that grows as a live one does.

Three parts talk as they would in earnest, on this host alone: a writer appends the recorded lines to a log,
`verlwatch run` watches it in a process of its own, and a receiver on loopback stands in for Slack and prints each
message as it arrives.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web

EPILOG = """It ends by itself within a minute, or on Ctrl-C.  Nothing is left behind."""

STEPS_PER_S = 9.0
_SETTLE_S = 8.0
_STEP = re.compile(rb"step:(\d+) - .*timing_s/step:")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser("demo", help="watch a recorded run live, in under a minute", epilog=EPILOG)
    parser.set_defaults(run_command=run)


def run(_: argparse.Namespace) -> int:
    """Plays the demo; 0 when every message that it promises has come."""
    with suppress(KeyboardInterrupt):
        return asyncio.run(_demo())
    print("\nstopped")
    return 0


async def _demo() -> int:
    with tempfile.TemporaryDirectory(prefix="verlwatch-demo-") as folder:
        home = Path(folder)
        log = home / "demo-run.log"
        log.touch()
        receiver = _Receiver()
        url = await receiver.start()
        webhook_file = home / "slack-webhook-url"
        webhook_file.write_text(url)
        webhook_file.chmod(0o600)
        daemon = await _start_daemon(home, log, webhook_file)
        try:
            print(f"a recorded run is being written to {log}, {STEPS_PER_S:g} steps a second\n", flush=True)
            await _write(log)
            await receiver.quiet()
        finally:
            await _stop(daemon)
            await receiver.stop()
        print(f"\n{receiver.count} messages. The run is over, the daemon has stopped.")
        return 0 if receiver.count else 1


async def _start_daemon(home: Path, log: Path, webhook_file: Path) -> asyncio.subprocess.Process:
    """Starts `verlwatch run` as a person would, and waits until it says where its status page is."""
    command = [sys.executable, "-m", "verlwatch", "run", "--log", str(log), "--slack-webhook-file", str(webhook_file)]
    command += ["--state-dir", str(home / "state"), "--http-listen", "127.0.0.1:0", "--log-format", "json"]
    daemon = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    seen = b""
    assert daemon.stdout is not None  # noqa: S101 - asked for above
    async for line in daemon.stdout:
        seen += line
        if found := re.search(rb"https?://127\.0\.0\.1:\d+/", line):
            print(f"verlwatch is watching; status page: {found.group().decode()}", flush=True)
            return daemon
    raise SystemExit(f"the daemon did not start:\n{seen.decode(errors='replace')}")


async def _stop(daemon: asyncio.subprocess.Process) -> None:
    if daemon.returncode is None:
        with suppress(ProcessLookupError):
            daemon.send_signal(signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(10):
            await daemon.communicate()
            return
    daemon.kill()
    await daemon.wait()


def _pieces() -> Iterator[tuple[int | None, bytes]]:
    """The recorded log in pieces that end with a step line; the step's number with each."""
    data = gzip.decompress((files("verlwatch.demo") / "train.log.gz").read_bytes())
    piece = b""
    for line in data.splitlines(keepends=True):
        piece += line
        if found := _STEP.search(line):
            yield int(found[1]), piece
            piece = b""
    yield None, piece


async def _write(log: Path) -> None:
    """Appends the log as training would, much faster."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    written = 0
    with log.open("ab", buffering=0) as file:
        for step, piece in _pieces():
            file.write(piece)
            written += 1
            if step is not None and step % 50 == 0:
                print(f"          … step {step}", flush=True)
            await asyncio.sleep(max(0.0, began + written / STEPS_PER_S - loop.time()))


class _Receiver:
    """Stands in for Slack: takes what an incoming webhook takes, and prints it as text."""

    def __init__(self) -> None:
        self.count = 0
        self._came = asyncio.Event()
        app = web.Application()
        app.router.add_post("/services/{path:.*}", self._take)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> str:
        """Starts listening on loopback and returns the webhook's URL."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}/services/T0DEMO/B0DEMO/demo"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def quiet(self) -> None:
        """Returns when no message has come for a while."""
        with suppress(TimeoutError):
            while True:
                self._came.clear()
                await asyncio.wait_for(self._came.wait(), _SETTLE_S / 2)

    async def _take(self, request: web.Request) -> web.Response:
        print(_as_text(await request.json()) + "\n", flush=True)
        self.count += 1
        self._came.set()
        return web.Response(text="ok")


def _as_text(payload: dict[str, Any]) -> str:
    """A Slack message as a person reads it, in plain text."""
    lines = []
    for block in payload.get("blocks", []):
        texts = [block[part] for part in ("text",) if part in block]
        texts += block.get("fields", []) + [e for e in block.get("elements", []) if isinstance(e, dict)]
        cells = [text["text"].replace("*", "").replace("`", "") for text in texts if "text" in text]
        if block.get("fields"):
            cells = [cell.replace("\n", ": ") for cell in cells]
        lines.append("  ".join(cell for cell in cells if cell))
    body = "\n".join(lines) or str(payload.get("text", ""))
    body = re.sub(r"<!date\^[^|>]*\|([^>]*)>", r"\1", body)
    unescaped = body.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return "\n".join("  │ " + line for line in unescaped.splitlines())
