"""What a hub answers, and when: yes after the commit, nothing twice, nothing of another agent's."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.clock import VirtualClock
from tests.shell.fleet.rig import EPOCH, Rig, delivery
from verlwatch.config import Config
from verlwatch.config._fleet import Hub as HubConfig
from verlwatch.config._fleet import HubAgent
from verlwatch.core.types import Chunk
from verlwatch.fields import Secret, SecretError
from verlwatch.roles import tokens
from verlwatch.shell.fleet import hub as hub_module
from verlwatch.shell.fleet.hub import BODY_BYTES, PATH
from verlwatch.shell.inbox import Inbox, Parcel


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BODY_S", "INBOX_S", "COMMIT_S"):
        monkeypatch.setattr(hub_module, name, 0.2)


# ---------------------------------------------------------------------------------------------------- yes, and when
async def test_yes_is_said_only_after_the_commit(rig: Rig) -> None:
    asked = asyncio.create_task(rig.takes(1, 2))
    while not len(rig.inbox):
        await asyncio.sleep(0.01)
    done, _ = await asyncio.wait({asked}, timeout=0.1)
    assert not done
    assert await rig.steps() == []
    rig.judge()
    assert await asked == (200, 2)
    assert await rig.steps() == [1, 2]


async def test_the_answer_tells_the_time_of_the_hub(tmp_path: Path) -> None:
    rig = Rig(tmp_path, VirtualClock(5e5))
    await rig.start()
    rig.judge()
    _, answer, headers = await rig.post(delivery(1))
    assert (answer, headers["Content-Type"]) == ({"taken": 1, "now": 5e5}, "application/json")
    assert rig.hub.agents()[0].skew_s == 5e5
    await rig.stop()


async def test_what_is_committed_is_ignored_and_counted_when_it_comes_again(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1, 2, 3) == (200, 3)
    before = rig.tables()
    assert await rig.takes(1, 2, 3) == (200, 3)
    assert await rig.takes(2) == (200, 3)
    assert rig.tables() == before
    assert await rig.takes(2, 3, 4) == (200, 4)
    assert await rig.steps() == [1, 2, 3, 4]
    assert rig.hub.agents()[0].repeated == 3 + 1 + 2


async def test_a_request_that_comes_again_before_its_commit_is_judged_once(rig: Rig) -> None:
    first = asyncio.create_task(rig.takes(1, 2))
    while not len(rig.inbox):
        await asyncio.sleep(0.01)
    again = asyncio.create_task(rig.takes(1, 2))
    await asyncio.sleep(0.05)
    rig.judge()
    assert list(await asyncio.gather(first, again)) == [(200, 2), (200, 2)]
    assert rig.engine.runs["r"].steps_seen == 2
    assert await rig.steps() == [1, 2]
    assert rig.hub.agents()[0].repeated == 2


async def test_a_request_that_comes_again_after_its_answer_failed_is_judged_once(rig: Rig, hurry: None) -> None:
    assert await rig.takes(1, 2) == (503, None)
    assert await rig.takes(1, 2) == (503, None)
    assert [item.cursor is not None for item in rig.inbox._items if isinstance(item, Parcel)] == [True, False]
    rig.judge()
    assert await rig.takes(1, 2, 3) == (200, 3)
    assert await rig.steps() == [1, 2, 3]


async def test_two_requests_of_one_agent_follow_one_another_and_a_third_is_sent_away(rig: Rig) -> None:
    first, second = (asyncio.create_task(rig.takes(*numbers, oldest=1)) for numbers in ((1, 2), (3,)))
    while not len(rig.inbox) or rig.hub._agents["n1"].requests < 2:
        await asyncio.sleep(0.01)
    status, _, headers = await rig.post(delivery(1, 2))
    assert (status, headers["Retry-After"]) == (429, "2")
    rig.judge()
    assert await rig.takes(1, agent="n2", run="other") == (200, 1)
    assert list(await asyncio.gather(first, second)) == [(200, 2), (200, 3)]
    assert await rig.steps() == [1, 2, 3]


async def test_a_large_delivery_is_judged_in_parcels(rig: Rig) -> None:
    asked = asyncio.create_task(rig.takes(*range(1, 151)))
    while len(rig.inbox) < 3:
        await asyncio.sleep(0.01)
    items = [item for item in rig.inbox._items if isinstance(item, Parcel)]
    assert [item.cursor and item.cursor.applied_to for item in items] == [64, 128, 150]
    rig.judge()
    assert await asked == (200, 150)
    assert len(await rig.steps()) == 150


# ---------------------------------------------------------------------------------------------------- numbers
async def test_a_gap_is_refused_with_where_to_go_on(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1) == (200, 1)
    before = rig.tables()
    status, answer, _ = await rig.post(delivery(3, 4, oldest=2))
    assert (status, answer) == (409, {"taken": 1, "error": "shipment 2 is the next one"})
    assert rig.tables() == before
    assert await rig.takes(2, 3) == (200, 3)
    assert rig.hub.agents()[0].refused == 1


async def test_what_the_agent_itself_no_longer_holds_is_counted_as_lost(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1) == (200, 1)
    assert await rig.takes(5, 6) == (200, 6)
    assert await rig.takes(oldest=10) == (200, 9)
    assert await rig.steps() == [1, 5, 6]
    assert rig.hub.agents()[0].lost == 3 + 3


async def test_an_outbox_that_was_made_anew_begins_anew_and_the_old_one_is_refused(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1, 2) == (200, 2)
    assert await rig.takes(1, epoch=EPOCH + 1) == (200, 1)
    before = rig.tables()
    status, answer, _ = await rig.post(delivery(3, software="twin"))
    assert (status, answer["error"].partition(":")[0]) == (
        409, "the outbox of this agent is older than one that the hub has taken deliveries of",
    )  # fmt: skip
    assert rig.tables() == before
    agent = rig.hub.agents()[0]
    assert (agent.lost, agent.refused, agent.version) == (0, 1, "0"), "the other one's state is not shown as this one's"


async def test_a_hub_that_restarts_knows_what_it_has_committed(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1, 2) == (200, 2)
    await rig.stop()
    await rig.start()
    rig.judge()
    assert await rig.takes(2, 3) == (200, 3)
    assert await rig.steps() == [1, 2, 3]
    assert rig.hub.agents()[0].repeated == 1


async def test_what_was_in_the_inbox_at_the_end_is_taken_after_the_restart(rig: Rig, hurry: None) -> None:
    assert await rig.takes(1, 2) == (503, None)
    rig.inbox._items.clear()  # the process was killed
    await rig.stop()
    await rig.start()
    rig.judge()
    assert await rig.takes(1, 2) == (200, 2)
    assert await rig.steps() == [1, 2]
    assert rig.hub.agents()[0].repeated == 0


# ---------------------------------------------------------------------------------------------------- no room
async def test_a_full_inbox_asks_the_agent_to_come_again(tmp_path: Path, hurry: None) -> None:
    rig = Rig(tmp_path, inbox=Inbox(max_items=1))
    await rig.start()
    await rig.inbox.put(Chunk("b.log", 1, 0, b"x\n"))
    before = rig.tables()
    status, _, headers = await rig.post(delivery(1))
    assert (status, headers["Retry-After"]) == (429, "2")
    assert rig.tables() == before
    rig.judge()
    assert await rig.takes(1) == (200, 1)
    await rig.stop()


async def test_what_finds_room_is_taken_and_the_agent_goes_on_behind_it(tmp_path: Path, hurry: None) -> None:
    rig = Rig(tmp_path, inbox=Inbox(max_items=1))
    await rig.start()
    asked = asyncio.create_task(rig.takes(*range(1, 101)))
    while not rig.hub._agents["n1"].put[1]:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.25)  # the rest has found no room
    rig.judge()
    assert await asked == (200, 64)
    assert await rig.takes(*range(65, 101)) == (200, 100)
    assert len(await rig.steps()) == 100
    await rig.stop()


async def test_a_commit_that_takes_long_asks_the_agent_to_come_again(rig: Rig, hurry: None) -> None:
    status, answer, headers = await rig.post(delivery(1))
    assert (status, headers["Retry-After"]) == (503, "2")
    assert answer == {"error": "the hub cannot commit now; its status says why"}


async def test_a_hub_that_stops_asks_the_agent_to_come_again(rig: Rig) -> None:
    rig.inbox.close()
    assert await rig.takes(1) == (429, None)


# ---------------------------------------------------------------------------------------------------- tokens
@pytest.mark.parametrize("token", [None, "", "wrong", "of-n1x", "of-n", "ü", "of-n1 of-n2"])
async def test_who_has_no_token_is_refused_and_counted(rig: Rig, token: str | None) -> None:
    rig.judge()
    before = rig.tables()
    status, answer, _ = await rig.post(delivery(1), token)
    assert (status, "token" in answer["error"]) == (401, True)
    assert rig.hub.strangers == 1
    assert rig.tables() == before
    assert await rig.takes(1) == (200, 1)


async def test_a_token_speaks_for_its_own_agent_alone(rig: Rig) -> None:
    rig.judge()
    assert await rig.takes(1, agent="n2") == (200, 1)
    before = rig.tables()
    status, answer, _ = await rig.post(delivery(2, agent="n2"), "of-n1")
    assert (status, answer["error"]) == (403, "this token is that of agent n1, the delivery names another")
    assert rig.tables() == before
    assert [agent.refused for agent in rig.hub.agents()] == [1, 0]
    assert rig.hub.strangers == 1
    assert await rig.takes(2, agent="n2") == (200, 2)


async def test_tokens_change_without_a_restart_and_overlap_while_they_do(rig: Rig) -> None:
    rig.judge()
    both = {"n1": [Secret("of-n1"), Secret("new")]}
    rig.hub.reconfigure(both)
    assert [(await rig.post(delivery(1), token))[0] for token in ("of-n1", "new")] == [200, 200]
    rig.hub.reconfigure({"n1": [Secret("new")]})
    assert [(await rig.post(delivery(1), token))[0] for token in ("of-n1", "new")] == [401, 200]
    assert [agent.name for agent in rig.hub.agents()] == ["n1"]
    assert (await rig.post(delivery(1, agent="n2"), "of-n2"))[0] == 401
    rig.hub.reconfigure({"n1": [Secret("new")], "n2": [Secret("of-n2")]})
    assert await rig.takes(1, agent="n2") == (200, 1)


def test_no_two_agents_have_the_same_token(tmp_path: Path) -> None:
    for name, content in (("a", "one\ntwo"), ("b", "three two"), ("c", " four \n\n")):
        (tmp_path / name).write_text(content)
    agents = {name: HubAgent(name=name, token_file=str(tmp_path / name)) for name in "abc"}
    read = tokens(Config(hub=HubConfig(agents=(agents["a"], agents["c"]))))
    assert {name: [one.reveal() for one in of] for name, of in read.items()} == {"a": ["one", "two"], "c": ["four"]}
    with pytest.raises(SecretError, match="/b: agents a and b have the same token") as caught:
        tokens(Config(hub=HubConfig(agents=tuple(agents.values()))))
    assert "two" not in str(caught.value).replace(str(tmp_path), "")


# ---------------------------------------------------------------------------------------------------- bodies
def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


GOOD = zlib.compress(delivery(1))


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (bytes(BODY_BYTES + 1), {}, 413, f"may have {BODY_BYTES} bytes"),
        (bomb(1 << 30), {}, 413, f"may have {BODY_BYTES} bytes unpacked"),
        (GOOD[:-5], {}, 400, "the body is cut"),
        (GOOD[: len(GOOD) // 2], {}, 400, "the body is cut"),
        (GOOD + b"\0", {}, 400, "goes on behind its end"),
        (b"", {}, 400, "the body is cut"),
        (delivery(1), {}, 400, "is not deflate"),
        (GOOD, {"Content_Encoding": "gzip"}, 400, "'gzip' is not known here"),
        (GOOD, {"Content_Encoding": "deflate, deflate"}, 400, "is not known here"),
        (GOOD, {"Content_Encoding": "identity"}, 400, "Invalid JSON"),
        (GOOD, {"Content_Type": "text/plain"}, 415, "application/json"),
    ],
    ids=["large", "bomb", "cut", "half", "more", "empty", "plain", "gzip", "twice", "identity", "text"],
)
async def test_what_is_no_delivery_is_refused_and_changes_nothing(
    rig: Rig, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    rig.judge()
    before = rig.tables()
    said, answer, _ = await rig.post(body, packed=False, **({"Content_Encoding": "deflate"} | headers))
    assert said == status
    assert words in answer["error"]
    assert rig.tables() == before
    assert rig.hub.agents()[0].refused == 1
    assert await rig.takes(1) == (200, 1)


async def test_a_body_may_come_as_it_is(rig: Rig) -> None:
    rig.judge()
    assert (await rig.post(delivery(1), packed=False))[0] == 200


def head(length: str) -> bytes:
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer of-n1\r\nContent-Type: application/json\r\n"
        f"{length}\r\n\r\n"
    ).encode()


async def said(rig: Rig, *pieces: bytes, pause_s: float = 0.0, end: bool = False) -> bytes:
    """The first line of the answer to bytes; empty where there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.server.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if end:
            writer.write_eof()
        async with asyncio.timeout(5):
            return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_body_that_does_not_come_whole_in_time_is_refused(rig: Rig, hurry: None) -> None:
    assert b" 408 " in await said(rig, head("Content-Length: 100"), b"{")
    assert b" 408 " in await said(rig, head("Transfer-Encoding: chunked"), *[b"1\r\n{\r\n"] * 4, pause_s=0.06)
    assert rig.hub.agents()[0].refused == 2


async def test_a_body_without_an_end_is_refused_when_it_is_too_large(rig: Rig) -> None:
    pieces = [b"10000\r\n" + bytes(65536) + b"\r\n"] * (BODY_BYTES // 65536 + 1)
    assert b" 413 " in await said(rig, head("Transfer-Encoding: chunked"), *pieces)
    assert b" 413 " in await said(rig, head(f"Content-Length: {10 * BODY_BYTES}"), b"{")


@pytest.mark.parametrize(
    "sent",
    [
        (head("Content-Length: 100"), b"{}"),
        (head("Transfer-Encoding: chunked"), b"zz\r\n"),
        (head("Transfer-Encoding: chunked"), b"5\r\nab"),
        (head("Content-Length: -1"), b"{}"),
        (head("Content-Length: 2\r\nContent-Length: 3"), b"{}"),
        (head("Content-Length: 2\r\nTransfer-Encoding: chunked"), b"{}"),
        (head("Content-Length: 1"), b"{}"),
    ],
)
async def test_a_length_that_lies_costs_the_request_alone(
    rig: Rig, sent: tuple[bytes, ...], capsys: pytest.CaptureFixture[str], hurry: None
) -> None:
    before = rig.tables()
    first = await said(rig, *sent, end=True)
    assert not first or b" 4" in first
    await asyncio.sleep(0.05)
    assert "Traceback" not in capsys.readouterr().out
    assert rig.tables() == before
    rig.judge()
    assert await rig.takes(1) == (200, 1)


async def test_refusals_are_all_counted_and_seldom_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = VirtualClock()
    rig = Rig(tmp_path, clock)
    await rig.start()
    for _ in range(5):
        await rig.post(b"{}")
    clock.move(61.0)
    await rig.post(b"{}")
    assert capsys.readouterr().out.count("delivery refused") == 2
    assert rig.hub.agents()[0].refused == 6
    await rig.stop()
