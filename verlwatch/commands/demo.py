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

from verlwatch.commands._output import say

EPILOG = """It ends by itself within a minute, or on Ctrl-C.  Nothing is left behind."""

STEPS_PER_S = 9.0
PROMISED = (
    r"gen took ",
    r"gen is back to normal",
    r"old_log_prob took ",
    r"old_log_prob is back to normal",
    r"gen is ×[\d.]+ since step 200",
    r"run ended at step 300 with gen still",
)
"""The headlines that the recorded run is good for, whatever else is told."""
_PATIENCE_S = 15.0
_STEP = re.compile(rb"step:(\d+) - .*timing_s/step:")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser("demo", help="watch a recorded run live, in under a minute", epilog=EPILOG)
    parser.add_argument(
        "--pace", type=_pace, default=STEPS_PER_S, metavar="STEPS", help="steps a second (default %(default)g)"
    )
    parser.set_defaults(run_command=run)


def _pace(text: str) -> float:
    pace = float(text)  # argparse tells a ValueError as what it is
    if not 0 < pace < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: give more than 0 steps a second")
    return pace


def run(args: argparse.Namespace) -> int:
    """Plays the demo; 0 when every message that it promises has come."""
    return asyncio.run(_demo(args.pace))


async def _demo(pace: float) -> int:
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
            say(f"a recorded run is being written to {log}, {pace:g} steps a second\n", flush=True)
            await _write(log, pace)
            await receiver.complete()
        finally:
            await _stop(daemon)
            await receiver.stop()
    say(f"\n{len(receiver.headlines)} messages. The run is over, the daemon has stopped.")
    if missing := receiver.missing():
        print(f"did not come within {_PATIENCE_S:g} s: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


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
            say(f"verlwatch is watching; status page: {found.group().decode()}", flush=True)
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


async def _write(log: Path, pace: float) -> None:
    """Appends the log as training would, much faster."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    written = 0
    with log.open("ab", buffering=0) as file:
        for step, piece in _pieces():
            file.write(piece)
            written += 1
            if step is not None and step % 50 == 0:
                say(f"          … step {step}", flush=True)
            await asyncio.sleep(max(0.0, began + written / pace - loop.time()))


class _Receiver:
    """Stands in for Slack: takes what an incoming webhook takes, and prints it as text."""

    def __init__(self) -> None:
        self.headlines: list[str] = []
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

    def missing(self) -> list[str]:
        """What was promised and has not come."""
        return [promise for promise in PROMISED if not any(re.search(promise, line) for line in self.headlines)]

    async def complete(self) -> None:
        """Returns when everything promised has come, or nothing more for so long that it never will."""
        with suppress(TimeoutError):
            while self.missing():
                self._came.clear()
                await asyncio.wait_for(self._came.wait(), _PATIENCE_S)

    async def _take(self, request: web.Request) -> web.Response:
        payload = await request.json()
        say(_as_text(payload) + "\n", flush=True)
        self.headlines.append(payload["text"])
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
