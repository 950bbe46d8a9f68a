"""Whatever an agent with a valid token sends: it is taken or refused, and harms nobody else.

The fuzz changes valid deliveries in their structure and in their bytes; a failing one tells its seed.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import SOAK
from tests.shell.fleet.rig import EPOCH, Rig, delivery, samples
from verlwatch.core.types import Chunk, Extract
from verlwatch.shell.fleet.hub import BODY_BYTES
from verlwatch.shell.fleet.wire import MOST_RECORDS, DeliveryError, pack_delivery, pack_extracts, unpack

ROUNDS = 20_000 if SOAK else 1000

CLOWNS = "\N{CLOWN FACE}" * 100
NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(10**30), 0.5, 1e308, -0.0, float("nan"),
    float("inf"), "", "a", "a" * 100, "a" * 5000, CLOWNS, "\x1b[31m\n\r\0", "\u202e\u2066", "\ud800", "n2:a.log",
    "agent:n2", "n1:n2:x", "../../etc/passwd", "<script>", "timing_s/step", "progress", "finished", "critical",
    [], {}, [[]], {"a": {}}, [None] * 99,
    {"timing_s/gen": 1.0, "timing_s/step": float("nan")}, {"total": 2**62, "done": -1}, {"": 0}, {"\0": 1.0},
)  # fmt: skip


def valid(chance: random.Random, number: int) -> dict[str, Any]:
    """A delivery of samples and events of one agent."""
    sent: dict[str, Any] = json.loads(delivery(number, number + 1, run=chance.choice(("r", "local", "shared"))))
    name = chance.choice(("plan", "progress", "resume", "finished"))
    event = {
        "kind": "progress", "generation": 1, "end": 9, "writer": ["T", 7, ""], "name": name, "severity": "info",
        "attributes": {"total": 300, "done": 3}, "excerpt": "x", "scope": [],
    }  # fmt: skip
    sent["shipments"][0]["extracts"][0]["records"].append(event)
    sent["sources"] = [
        {"source": "a.log", "run": "r", "state": "live", "readable": True, "error": None, "lag_bytes": 0, "lag_s": 0.0}
    ]
    return sent


def places(data: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) in it."""
    for key in list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        found.append((data, key))
        places(data[key], found)
    return found


def mutated(chance: random.Random, number: int) -> bytes:
    """A delivery in which something is not as it should be."""
    sent = valid(chance, number)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 5))):
        container, key = chance.choice(places(sent, []))
        match chance.randrange(6):
            case 0 if isinstance(container, dict):
                del container[key]
            case 1 if isinstance(container, dict):
                name = chance.choice([one for one in NASTY if isinstance(one, str)])
                container[name] = container.pop(key)
            case 2 if isinstance(container, list):
                container.insert(key, deepcopy(chance.choice(NASTY)))
            case 3 if isinstance(container, list):
                container += [container[key]] * chance.choice((1, 70, 300))
            case _:
                container[key] = deepcopy(chance.choice(NASTY))
    body = json.dumps(sent).encode()
    return garbled(chance, body) if chance.random() < 0.3 else body


def garbled(chance: random.Random, packed: bytes) -> bytes:
    """The same with some bytes changed, missing, doubled or added."""
    body = bytearray(packed)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0:
                body[at : at + 1] = chance.randbytes(1)
            case 1:
                del body[at : at + chance.randint(1, 40)]
            case 2:
                body[at:at] = bytes(body[at : at + chance.randint(1, 40)])
            case 3:
                body[at:at] = chance.choice(
                    (b"[" * 300, b'{"a":' * 200, b"9" * 5000, b"NaN", b"\\ud800", b"\0", b"1e999")
                )
    return bytes(body)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    await rig.start()
    rig.judge()
    yield rig
    await rig.stop()


def of_others(tables: list[str]) -> list[str]:
    """What the database holds of agent n2 and of the run that it alone tells of."""
    return [row for row in tables if "\"cursor\" VALUES('agent:n2'" in row or "'mine'" in row]


async def test_random_deliveries_are_taken_or_refused_and_change_nothing_of_others(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(7)
    await rig.takes(1, 2, 3, agent="n2", run="mine")
    local = b"step:1 - timing_s/gen:40.0 - timing_s/step:60.0\n"
    await rig.inbox.put(Chunk("/local.log", 1, 0, local, run="local"))
    others = of_others(rig.tables())
    assert len(others) > 3
    said: dict[int, int] = {}
    memory = psutil.Process().memory_info().rss
    for seed in range(ROUNDS):
        agent = rig.hub._agents["n1"]
        if agent.known > (EPOCH, 2**40):  # it has locked itself out with the last of all numbers
            agent.epoch, agent.taken, agent.put = EPOCH, 0, (0, 0)
        body = mutated(random.Random(seed), agent.taken + 1)
        status, answer, _ = await rig.post(body, packed=chance.random() < 0.5)
        assert status in {200, 400, 403, 409, 413}, (seed, status, answer)
        assert status != 200 or answer["taken"] >= 0, seed
        said[status] = said.get(status, 0) + 1
    assert of_others(rig.tables()) == others
    assert min(said[200], said[400]) > ROUNDS // 20, "the fuzz reaches both"
    assert psutil.Process().memory_info().rss - memory < 200 << 20
    out = capsys.readouterr().out
    assert "Traceback" not in out
    assert not any(character in out.replace("\n", "") for character in map(chr, (*range(32), 0x202E, 0x7F)))
    assert await rig.takes(4, agent="n2", run="mine") == (200, 4)


async def test_a_run_may_have_any_name_that_fits_on_a_line(rig: Rig) -> None:
    for number, name in enumerate(
        (CLOWNS, "local", "a/../b", "'; DROP TABLE step; --", "agent:n2", "{folder}"), start=1
    ):
        assert await rig.takes(number, run=name) == (200, number)
        assert await rig.steps(name) == [number]


async def test_sources_that_look_like_another_agents_stay_this_ones(rig: Rig) -> None:
    for number, source in enumerate(("n2:a.log", "agent:n2", "/a.log"), start=1):
        sent = json.loads(delivery(number))
        sent["shipments"][0]["extracts"][0]["source"] = source
        assert (await rig.post(json.dumps(sent).encode()))[0] == 200
    await rig.takes(1, agent="n2", run="r")
    assert {cursor.source for cursor in (await rig.store.load()).cursors} == {"agent:n1", "agent:n2"}
    views = rig.engine.runs["r"].attempts.state()["views"]
    assert sorted(view[0] for view in views) == ["n1:/a.log", "n1:agent:n2", "n1:n2:a.log", "n2:a.log"]


async def test_a_replayed_delivery_changes_nothing(rig: Rig) -> None:
    recorded = [delivery(*range(at, at + 3)) for at in range(1, 30, 3)]
    for body in recorded:
        assert (await rig.post(body))[0] == 200
    before = rig.tables()
    for body in [*recorded, *reversed(recorded)]:
        status, answer, _ = await rig.post(body)
        assert (status, answer["taken"]) == (200, 30)
    assert rig.tables() == before


# ---------------------------------------------------------------------------------------------------- costly ones
def filled(pattern: Callable[[int], bytes], begin: bytes, end: bytes) -> bytes:
    """As many pieces as a body has room for."""
    pieces: list[bytes] = []
    left = BODY_BYTES - len(begin) - len(end)
    while (left := left - len(piece := pattern(len(pieces))) - 1) >= 0:
        pieces.append(piece)
    return begin + b",".join(pieces) + end


HEAD = delivery()[:-1].removesuffix(b',"shipments":[]')
RECORD = HEAD + b',"shipments":[{"number":1,"thinned":0,"extracts":[{"source":"a","run":"r","history":false,"records":['
SMALL = b'{"kind":"k","generation":0,"end":9,"writer":["",0,""],'
COSTLY = {
    "shipments": filled(lambda _: b"{}", HEAD + b',"shipments":[', b"]}"),
    "records": filled(lambda _: b"{}", RECORD, b"]}]}]}"),
    "bad values": filled(lambda i: b'"%d":""' % i, RECORD + SMALL + b'"values":{', b"}}]}]}]}"),
    "many values": filled(lambda i: b'"%d":1' % i, RECORD + SMALL + b'"values":{', b"}}]}]}]}"),
    "attributes": filled(lambda i: b'"%d":[]' % i, RECORD + SMALL + b'"attributes":{', b"}}]}]}]}"),
    "scope": filled(lambda _: b"[]", RECORD + SMALL + b'"scope":[', b"]}]}]}]}"),
    "keys": filled(lambda i: b'"%d":1' % i, HEAD + b',"shipments":[],"x":{', b"}}"),
    "same key": filled(lambda _: b'"shipments":[]', HEAD + b",", b"}"),
    "nested": filled(lambda _: b"[" * 100 + b"]" * 100, HEAD + b',"shipments":[],"x":[', b"]}"),
    "deep": HEAD + b',"shipments":' + b"[" * 1_000_000,
    "digits": HEAD + b',"shipments":[],"x":' + b"9" * 1_500_000 + b"}",
    "numbers": filled(lambda _: b"9" * 4000, HEAD + b',"shipments":[],"x":[', b"]}"),
    "escapes": HEAD + b',"shipments":[],"x":"' + b"\\ud83e\\udd21" * 120_000 + b'"}',
    "run": delivery().replace(b'"shipments":[]', b'"shipments":[],"agent":"' + b"x" * 1_500_000 + b'"'),
}  # fmt: skip


@pytest.mark.parametrize("what", COSTLY)
async def test_a_body_made_to_be_costly_costs_little(rig: Rig, what: str) -> None:
    unpack(delivery())  # the first one makes what checks them all
    memory = psutil.Process().memory_info().rss
    begun = time.thread_time()
    with suppress(DeliveryError):
        unpack(COSTLY[what])
    assert time.thread_time() - begun < 1.0, "usually 0.1 s"
    status, *_ = await rig.post(COSTLY[what])
    assert status in {200, 400, 413}
    assert psutil.Process().memory_info().rss - memory < 250 << 20
    assert await rig.takes(1) == (200, 1)


async def test_the_largest_delivery_holds_the_loop_up_for_no_longer_than_a_log_does(rig: Rig) -> None:
    steps = [samples(step) for step in range(1, 60 * MOST_RECORDS + 1)]  # of few values each: as costly as any
    packed = list(pack_extracts([Extract("a.log", "r", tuple(steps))]))
    head = json.loads(HEAD + b"}") | {"epoch": EPOCH, "oldest": 1}
    body = pack_delivery(head, [(number, 0, one.extracts) for number, one in enumerate(packed, start=1)])
    assert len(body) < BODY_BYTES
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begun)

    watching = asyncio.create_task(watch())
    taken = 0
    while taken < len(packed):
        status, answer, _ = await rig.post(body)
        taken = answer["taken"] if status == 200 else taken
    watching.cancel()
    assert longest < 1.0
    assert len(await rig.store.steps("r", last=10**6)) == len(steps)


async def test_many_large_requests_at_once_are_read_one_by_one(rig: Rig) -> None:
    body = zlib.compress(COSTLY["many values"], 1)
    memory = psutil.Process().memory_info().rss
    answers = await asyncio.gather(*(rig.post(body, packed=False, Content_Encoding="deflate") for _ in range(40)))
    said = [status for status, *_ in answers]
    assert set(said) <= {400, 429}
    assert said.count(429) > 0
    assert psutil.Process().memory_info().rss - memory < 250 << 20
    assert await rig.takes(1) == (200, 1)
