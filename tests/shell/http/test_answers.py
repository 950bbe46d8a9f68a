"""What each path answers, asked of a real server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest
from pydantic import TypeAdapter

from tests.shell.http.fake import FakeSource, hub_status, status
from verlwatch.status import AgentStatus, PhaseStatus, RunStatus, SourceStatus, Status

if TYPE_CHECKING:
    from tests.shell.http.conftest import Get


@pytest.mark.parametrize("path", ["/healthz", "/-/healthy"])
async def test_a_watcher_that_judges_is_alive(path: str, get: Get) -> None:
    assert await get(path) == (200, {"alive": True, "stalled": None})


@pytest.mark.parametrize("path", ["/healthz", "/-/healthy"])
async def test_a_watcher_that_does_not_judge_is_not_alive_and_says_what_stalled(
    path: str, get: Get, source: FakeSource
) -> None:
    source.stall = "judging has not turned for 95 s"
    assert await get(path) == (503, {"alive": False, "stalled": "judging has not turned for 95 s"})


@pytest.mark.parametrize("path", ["/readyz", "/-/ready"])
async def test_what_is_not_ready_is_named(path: str, get: Get) -> None:
    assert await get(path) == (
        503,
        {"ready": False, "not_ready": ["source /home/ada/runs/llama-ppo/train.log"]},
    )


@pytest.mark.parametrize("path", ["/readyz", "/-/ready"])
async def test_a_watcher_that_sees_everything_is_ready(path: str, get: Get, source: FakeSource) -> None:
    source.now = replace(status(), ready=True, not_ready=())
    assert await get(path) == (200, {"ready": True, "not_ready": []})


async def test_being_blind_is_no_reason_to_be_restarted(get: Get) -> None:
    assert (await get("/readyz"))[0] == 503
    assert (await get("/healthz"))[0] == 200


async def test_the_status_reads_back_as_it_was(get: Get) -> None:
    code, body = await get("/api/v1/status")
    assert code == 200
    assert TypeAdapter(Status).validate_json(orjson.dumps(body)) == status()


async def test_the_agents_of_a_hub_are_a_list_that_reads_back_as_it_was(get: Get, source: FakeSource) -> None:
    assert await get("/api/v1/agents") == (200, [])
    source.now = hub_status()
    code, body = await get("/api/v1/agents")
    assert code == 200
    assert TypeAdapter(tuple[AgentStatus, ...]).validate_json(orjson.dumps(body)) == hub_status().agents


async def test_a_number_that_is_not_finite_is_null(get: Get, source: FakeSource) -> None:
    phase = PhaseStatus(name="gen", now_s=float("nan"), ratio=float("inf"), recent=(1.0, float("nan")))
    source.now = replace(status(), runs=(RunStatus(name="r", phases=(phase,)),))
    _, body = await get("/api/v1/status")
    shown = body["runs"][0]["phases"][0]
    assert (shown["now_s"], shown["ratio"], shown["recent"]) == (None, None, [1.0, None])


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/agents", "/metrics", "/", "/readyz"])
async def test_a_file_name_that_is_no_utf8_breaks_no_answer(path: str, get: Get, source: FakeSource) -> None:
    odd = SourceStatus(source="/data/caf\udce9.log", run="r", state="live", readable=True)
    agents = (AgentStatus(name="caf\udce9", seen_at=1.0),)
    source.now = replace(hub_status(), ready=True, not_ready=("caf\udce9",), sources=(odd,), agents=agents)
    code, body = await get(path)
    assert code == 200
    assert "caf\\udce9" in str(body).replace("\\\\", "\\")


@pytest.mark.parametrize("path", ["/nothing", "/api/v2/status", "/static/", "/static/../server.py", "//", "/metrics/"])
async def test_any_other_path_says_what_there_is(path: str, get: Get) -> None:
    code, body = await get(path)
    assert code == 404
    assert "/api/v1/status" in body["error"]


async def test_a_failing_status_is_an_error_in_json_that_tells_no_detail(get: Get, source: FakeSource) -> None:
    source.error = RuntimeError("canary detail")
    code, body = await get("/api/v1/status")
    assert code == 500
    assert body == {"error": "answering failed; the log of verlwatch says why"}


async def test_the_server_goes_on_after_an_answer_that_failed(get: Get, source: FakeSource) -> None:
    source.error = RuntimeError("once")
    await get("/")
    source.error = None
    assert (await get("/"))[0] == 200


async def test_the_style_is_a_file_of_its_own(get: Get) -> None:
    code, body = await get("/static/style.css")
    assert code == 200
    assert "prefers-color-scheme: dark" in body


async def test_a_query_changes_nothing(get: Get) -> None:
    assert (await get("/healthz?verbose=1"))[0] == 200
