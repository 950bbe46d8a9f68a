"""A real Chromium for pages in files: what it draws, logs and asks the network for, by the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-port=0",
)  # fmt: skip
START_S, ANSWER_S = 30.0, 30.0


@dataclass
class Page:
    """One tab.  ``errors`` are what its console says at level error, ``requests`` every address that it asked for."""

    socket: aiohttp.ClientWebSocketResponse
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command; what is told meanwhile is noted."""
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while True:
            told = await self._next()
            if told.get("id") == number:
                assert "error" not in told, (method, told["error"])
                found: dict[str, Any] = told["result"]
                return found

    async def until(self, event: str) -> None:
        """Waits for an event."""
        while (await self._next()).get("method") != event:
            pass

    async def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a file, and forgets what an earlier one did."""
        self.errors.clear()
        self.requests.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                        mobile=False)  # fmt: skip
        await self.call("Page.navigate", url=path.as_uri())
        await self.until("Page.loadEventFired")

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        codes = {"Tab": 9, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    async def point(self, x: float, y: float) -> None:
        """Moves the pointer."""
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    async def _next(self) -> dict[str, Any]:
        told: dict[str, Any] = await asyncio.wait_for(self.socket.receive_json(), ANSWER_S)
        method, params = told.get("method"), told.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(str(params["args"]))
        return told


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """Chromium with one empty tab, ended behind."""
    assert CHROMIUM
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = await asyncio.wait_for(_port(profile / "DevToolsActivePort"), START_S)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tab = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Network", "Log", "Runtime"):
                    await page.call(f"{domain}.enable")
                yield page
    finally:
        process.terminate()
        await process.wait()


async def _port(told: Path) -> int:
    while not told.exists() or not (lines := told.read_text().split()):
        await asyncio.sleep(0.02)
    return int(lines[0])
