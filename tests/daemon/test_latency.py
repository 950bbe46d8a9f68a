"""A step line appended to a log that has long been quiet reaches a receiver within half a second."""

from __future__ import annotations

import asyncio
import random
import re
import time
from pathlib import Path

from tests.conftest import SOAK
from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink

RUNS = 100
QUIET_S = 600.0 if SOAK else 3.0
WITHIN_S = 0.5
SHARE = 0.99 if SOAK else 0.9
"""Of the messages; a machine that is shared with other tests may now and then be late by itself."""


async def test_a_slow_step_after_a_long_silence_is_told_within_half_a_second(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    lines = (recorded / "verl-0.3.0.post1.driver.log").read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if re.search(rb"step:120 - ", line))
    config = [f"receivers: [{{name: hook, type: webhook, url: '{sink.url}'}}]", "runs:"]
    logs = [tmp_path / f"run-{i:03}.log" for i in range(RUNS)]
    for log in logs:
        log.write_bytes(b"".join(lines[:at]))
        config.append(f"  - logs: [{log}]")
    path = tmp_path / "verlwatch.yaml"
    path.write_text("\n".join(config))
    daemon = await start("--config", path, "--state-dir", tmp_path / "state")
    await daemon.caught_up(*logs)
    await asyncio.sleep(QUIET_S)

    assert sink.received == []
    seed = random.Random(7)
    appended = {}
    for log in logs:
        with log.open("ab", buffering=0) as file:
            file.write(lines[at])
        appended[log.stem] = time.monotonic()
        await asyncio.sleep(seed.uniform(0.02, 0.08))
    await daemon.caught_up(*logs)

    waits = sorted(arrived - appended[body["run"]] for arrived, _, body in sink.received)
    assert len(waits) == RUNS
    assert waits[int(SHARE * RUNS) - 1] <= WITHIN_S, waits
