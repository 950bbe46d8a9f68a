"""SIGKILL at random moments of a live run ends in the same state, and the same messages, as an undisturbed run."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tests.conftest import SOAK
from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink, projection

KILLS = 500 if SOAK else 50


async def test_kills_during_a_live_run_change_nothing(
    recorded: Path, tmp_path: Path, start: Starter, sink: Sink
) -> None:
    lines = (recorded / "verl-0.3.0.post1.driver.log").read_bytes().splitlines(keepends=True)
    calm = await _undisturbed(lines, tmp_path / "calm", start, sink)
    told_calmly = sink.told()
    assert len(told_calmly) >= 6
    sink.received.clear()

    home = tmp_path / "storm"
    home.mkdir()
    log = home / "train.log"
    log.touch()
    arguments = ("--log", log, "--state-dir", home / "state", "--webhook-url", sink.url)
    seed = random.Random(20250401)
    killed = 0
    daemon = await start(*arguments)
    with log.open("ab", buffering=0) as file:
        for done, piece in enumerate(_pieces(lines, seed, KILLS + 1)):
            file.write(piece)
            await asyncio.sleep(seed.uniform(0.0, 0.25))
            if done < KILLS:
                await daemon.kill()
                killed += 1
                daemon = await start(*arguments)
    await daemon.caught_up(log)
    assert await daemon.stop() == 0
    assert killed == KILLS

    disturbed = projection(home / "state")
    for part, expected in calm.items():
        assert _renamed(disturbed[part], log) == _renamed(expected, tmp_path / "calm" / "train.log"), part
    assert sink.told() == told_calmly
    again = {key: n for key, n in Counter(key for _, key, _ in sink.received).items() if n > 1}
    assert set(again) <= {key for key, _ in told_calmly}, "a message may come twice only under its own id"


async def _undisturbed(lines: list[bytes], home: Path, start: Starter, sink: Sink) -> dict[str, object]:
    home.mkdir()
    log = home / "train.log"
    log.touch()
    daemon = await start("--log", log, "--state-dir", home / "state", "--webhook-url", sink.url)
    with log.open("ab", buffering=0) as file:
        file.writelines(lines)
    await daemon.caught_up(log)
    assert await daemon.stop() == 0
    return projection(home / "state")


def _pieces(lines: list[bytes], seed: random.Random, count: int) -> list[bytes]:
    """The whole text in ``count`` pieces that end anywhere, also inside a line."""
    text = b"".join(lines)
    cuts = [0, *sorted(seed.sample(range(1, len(text)), count - 1)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts)]


def _renamed(value: object, log: Path) -> str:
    return repr(value).replace(str(log), "LOG")
