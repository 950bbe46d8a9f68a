"""What a hub takes on one core, end to end with commit, and what an agent costs on its host.

    python benchmarks/hub.py [--steps 300] [--seconds 60]

Hub: a real one on the first core; sixteen agents in another process on the second, each with a run of its own, send the
recorded steps of verl 0.9.1 with every key, each waiting for its answer before the next delivery.  Beside it:

* file: the same steps read from files and judged by a standalone engine on one core, nothing committed;
* POST: the same bodies sent in the same way to a bare aiohttp server that reads them and answers.

Agent: a real one with a real hub, on a host with 20 logs in each of which a line of chatter is written every two
seconds, or five a second, and a step line every 30 s: processor time by the kernel's count, and resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from benchmarks.judge import FILLER
from verlwatch import __version__
from verlwatch.core.engine import Engine
from verlwatch.core.gather import Gatherer
from verlwatch.core.types import Chunk, Extract, Samples
from verlwatch.shell.fleet.hub import PATH
from verlwatch.shell.fleet.wire import pack_delivery, pack_extracts

LOG = Path(__file__).parents[1] / "tests" / "data" / "verl-0.9.1.numpy2.nocolor.driver.log.gz"
AGENTS = [f"n{number}" for number in range(16)]
PER_DELIVERY = (1, 8, 64)
HUB_CORE, CLIENT_CORE = 0, (os.cpu_count() or 1) - 1
FILES, STEP_S, SETTLE_S = 20, 30.0, 5.0
CHATTER = (0.5, 5.0)


def recorded() -> bytes:
    return gzip.decompress(LOG.read_bytes())


def steps(count: int) -> list[Samples]:
    """The recorded steps with timing; more than there are begin anew under later numbers."""
    (extract,) = Gatherer().feed(Chunk("train.log", 1, 0, recorded()), 0.0).extracts
    told = [record for record in extract.records if isinstance(record, Samples) and "timing_s/step" in record.values]
    return [told[n % len(told)]._replace(step=n + 1) for n in range(count)]


def deliveries(agent: str, samples: list[Samples], each: int) -> list[bytes]:
    """Deliveries of so many steps each, as an agent packs them."""
    bodies = []
    number = 1
    for at in range(0, len(samples), each):
        extract = Extract("train.log", f"run-of-{agent}", tuple(samples[at : at + each]))
        rows = [(n, packed.thinned, packed.extracts) for n, packed in enumerate(pack_extracts([extract]), number)]
        head = {
            "agent": agent, "software": __version__, "epoch": 1, "oldest": number, "waiting": len(rows),
            "sent_at": 0.0, "offset_s": None, "sources": [],
        }  # fmt: skip
        bodies.append(zlib.compress(pack_delivery(head, rows), 1))
        number += len(rows)
    return bodies


# ---------------------------------------------------------------------------------------------------- processes
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def daemon(command: str, folder: Path, port: int, *arguments: str, core: int | None = None) -> Iterator[int]:
    """A real daemon; its process id, once it answers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "verlwatch", command, "--http-listen", f"127.0.0.1:{port}",
         "--state-dir", str(folder / command), "--log-level", "warning", *arguments],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        while True:
            if process.poll() is not None:
                raise SystemExit(f"verlwatch {command} ended with {process.returncode}")
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                break
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def hub_config(folder: Path) -> Path:
    agents = []
    for name in AGENTS:
        token = folder / f"{name}.token"
        token.write_text(f"token-of-{name}")
        token.chmod(0o600)
        agents.append(f"{{name: {name}, token_file: {token}}}")
    config = folder / "hub.yaml"
    config.write_text(f"hub: {{agents: [{', '.join(agents)}]}}\n")
    return config


# ---------------------------------------------------------------------------------------------------- the hub
async def send(url: str, bodies: dict[str, list[bytes]]) -> float:
    """Every agent's deliveries, one after the other; the seconds until the last answer."""

    async def one(agent: str) -> None:
        headers = {
            "Authorization": f"Bearer token-of-{agent}",
            "Content-Type": "application/json",
            "Content-Encoding": "deflate",
        }
        for body in bodies[agent]:
            while True:
                async with session.post(url, data=body, headers=headers) as answer:
                    said = await answer.text()
                    if answer.status == 200:
                        break
                    if answer.status not in {429, 503}:
                        raise SystemExit(f"the hub answered {answer.status}: {said}")
                await asyncio.sleep(0.1)

    async with aiohttp.ClientSession() as session:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for agent in bodies:
                group.create_task(one(agent))
        return time.perf_counter() - began


def bare(port: int) -> None:
    """A server that reads what is posted."""
    os.sched_setaffinity(0, {HUB_CORE})

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"taken": 1})

    app = web.Application(client_max_size=1 << 24)
    app.router.add_post(PATH, answer)
    app.router.add_get("/healthz", answer)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None, handle_signals=False)


def taken_by_a_bare_server(bodies: dict[str, list[bytes]]) -> float:
    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=bare, args=(port,))
    server.start()
    try:
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                break
            time.sleep(0.05)
        return asyncio.run(send(f"http://127.0.0.1:{port}{PATH}", bodies))
    finally:
        server.kill()
        server.join()


def taken_by_a_hub(bodies: dict[str, list[bytes]]) -> tuple[float, float, float]:
    """Seconds by the clock and of processor time, and MB at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        with daemon("run", folder, port, "--config", str(hub_config(folder)), core=HUB_CORE) as pid:
            before = cpu_s(pid)
            wall = asyncio.run(send(f"http://127.0.0.1:{port}{PATH}", bodies))
            return wall, cpu_s(pid) - before, rss_mb(pid)


def judged_from_a_file(count: int) -> float:
    """Processor seconds in which one engine judges as many steps of as many runs from step lines."""
    lines = [line for line in recorded().splitlines(keepends=True) if b"timing_s/step" in line]
    text = b"".join(lines)
    runs = max(1, count * len(AGENTS) // len(lines))
    engine = Engine()
    began = time.process_time()
    for run in range(runs):
        for at in range(0, len(text), 128 << 10):
            engine.feed(Chunk(f"{run}.log", 1, at, text[at : at + (128 << 10)]), 0.0)
    return (time.process_time() - began) / (runs * len(lines))


def measure_hub(count: int) -> None:
    os.sched_setaffinity(0, {CLIENT_CORE})
    samples = steps(count)
    total = count * len(AGENTS)
    each_s = judged_from_a_file(count)
    print(f"{len(AGENTS)} agents, {count} steps each, {len(samples[0].values)} values a step")
    print(f"file: {1 / each_s:,.0f} steps/s of processor time\n")
    names = ("steps/s", "steps/CPU s", "POST", "hub ÷ POST", "hub ÷ file", "MB")
    print("steps a delivery", *(f"{name:>12}" for name in names))
    for each in PER_DELIVERY:
        bodies = {agent: deliveries(agent, samples, each) for agent in AGENTS}
        wall, cpu, memory = taken_by_a_hub(bodies)
        plain = total / taken_by_a_bare_server(bodies)
        ratios = total / wall / plain, total / cpu * each_s
        print(f"{each:16} {total / wall:12,.0f} {total / cpu:12,.0f} {plain:12,.0f}", end=" ")
        print(f"{ratios[0]:12.2f} {ratios[1]:12.2f} {memory:12.0f}", flush=True)


# ---------------------------------------------------------------------------------------------------- an agent
def write(logs: list[Path], lines_s: float, seconds: float, at_end: Callable[[], Any]) -> Any:
    """Lets the logs grow at the rates of real runs."""
    lines = [line for line in recorded().splitlines(keepends=True) if b"timing_s/step" in line]
    files = [log.open("ab", buffering=0) for log in logs]
    begins = time.monotonic()
    step = [n / len(files) * STEP_S for n in range(len(files))]
    told = [0] * len(files)
    turn = 0
    while (now := time.monotonic() - begins) < seconds:
        for n, file in enumerate(files):
            if (turn + n) % 2 == 0:
                continue
            file.write(FILLER[turn % len(FILLER)])
            if now >= step[n]:
                file.write(lines[told[n]])
                told[n] += 1
                step[n] += STEP_S
        turn += 1
        time.sleep(max(0.0, begins + turn / (2 * lines_s) - time.monotonic()))
    result = at_end()
    for file in files:
        file.close()
    return result


def measure_agent(lines_s: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        logs = [folder / f"run{n}.log" for n in range(FILES)]
        for log in logs:
            log.touch()
        agent_port = free_port()
        flags = ["--hub", f"http://127.0.0.1:{port}", "--token-file", str(folder / "n0.token"), "--name", "n0"]
        named = [part for log in logs for part in ("--log", str(log))]
        with (
            daemon("run", folder, port, "--config", str(hub_config(folder))),
            daemon("agent", folder, agent_port, *flags, *named) as pid,
        ):
            write(logs, lines_s, SETTLE_S, lambda: None)
            before, began = cpu_s(pid), time.monotonic()
            spent = write(logs, lines_s, seconds, lambda: cpu_s(pid) - before) / (time.monotonic() - began)
            with urllib.request.urlopen(f"http://127.0.0.1:{agent_port}/api/v1/status", timeout=5) as answer:
                hub = json.load(answer)["receivers"][0]
            print(
                f"agent with {FILES} logs, {lines_s:g} lines/s and a step every {STEP_S:g} s in each: "
                f"{spent:.2%} of a core, {rss_mb(pid):.0f} MB; "
                f"{hub['delivered']} shipments taken, {hub['pending']} wait"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="of each agent")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which the agent is watched")
    given = parser.parse_args()
    measure_hub(given.steps)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    print()
    for lines_s in CHATTER:
        measure_agent(lines_s, given.seconds)


if __name__ == "__main__":
    main()
