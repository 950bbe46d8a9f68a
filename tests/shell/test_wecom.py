"""WeCom gets what it documents, and each of its codes is read as it is meant."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.wecom import KEY, MARKDOWN, FakeWeCom, problems, refusal
from tests.shell.notifier_messages import EMPTY, HOSTILE, HUGE, MESSAGES, OPENED, RESOLVED, everywhere
from tests.shell.refusals import refused
from verlwatch.shell.notifiers import PermanentError, TransientError, in_language, open_session
from verlwatch.shell.notifiers.wecom import WeComConfig, WeComNotifier, image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

    from tests.fakes._server import Answer

TEXTS = st.text(st.sampled_from("&<>@`*[](){}#| \n\x1b[m\u202e😀a所") | st.characters(), max_size=400)
PNG = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was to be drawn; nothing is."""
    charts: list[dict[str, Any]] = []

    def draw(**chart: Any) -> bytes:
        charts.append(chart)
        return PNG

    monkeypatch.setattr("verlwatch.shell.notifiers.wecom.chart_png", draw)
    return charts


def notifier(url: str, session: aiohttp.ClientSession, folder: Path, proxy: str | None = None) -> WeComNotifier:
    (folder / "url").write_text(f"{url}\n")
    config = WeComConfig(name="wecom", type="wecom", webhook_url_file=str(folder / "url"), proxy=proxy)
    return WeComNotifier(config, session)


def text_of(payload: dict[str, Any]) -> dict[str, Any]:
    """What is sent of a payload as the message itself."""
    return {key: value for key, value in payload.items() if key != "chart"}


# ---------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY, in_language(OPENED, "zh")])
def test_every_message_is_within_the_limits_and_free_of_foreign_markup(message: Any) -> None:
    assert problems(text_of(WeComNotifier.render(message, "k" * 300))) == []


@given(text=TEXTS, evidence=st.lists(TEXTS, max_size=30))
def test_no_text_whatever_breaks_a_message(text: str, evidence: list[str]) -> None:
    message = replace(everywhere(text), evidence=tuple(evidence), advice=tuple(evidence), facts=((text, text),))
    assert problems(text_of(WeComNotifier.render(message, "k"))) == []


def test_a_text_that_is_too_long_keeps_its_footer() -> None:
    content = WeComNotifier.render(replace(OPENED, evidence=("证" * 300,) * 20), "7e57c0de-1")["markdown"]["content"]
    assert MARKDOWN - 1000 < len(content.encode()) <= MARKDOWN
    assert "message 7e57c0de-1" in content.split("\n")[-1]
    assert "more" in content.split("\n")[-2]


def test_a_hostile_text_mentions_nobody() -> None:
    content = WeComNotifier.render(HOSTILE, "k")["markdown"]["content"]
    assert "@" not in content
    assert content.count("<") == 2  # the colour of the title


def test_the_title_has_the_colour_of_how_things_stand() -> None:
    shown = [WeComNotifier.render(message, "k")["markdown"]["content"] for message in (OPENED, RESOLVED)]
    assert [text.split('"')[1] for text in shown] == ["warning", "info"]


# ---------------------------------------------------------------------------------------------------- sending
@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
async def test_wecom_takes_every_message(
    message: Any, session: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verlwatch.shell.notifiers.wecom.chart_png", lambda **_: None)
    payload = WeComNotifier.render(message, "k")
    async with FakeWeCom() as wecom:
        await notifier(wecom.url, session, tmp_path).send(payload, "k")
    assert wecom.received == [text_of(payload)]


async def test_what_is_new_comes_with_an_image(
    session: aiohttp.ClientSession, tmp_path: Path, drawn: list[dict[str, Any]]
) -> None:
    async with FakeWeCom() as wecom:
        for message in (OPENED, RESOLVED):
            await notifier(wecom.url, session, tmp_path).send(WeComNotifier.render(message, "k"), "k")
    assert [payload["msgtype"] for payload in wecom.received] == ["markdown", "image", "markdown"]
    assert wecom.received[1]["image"]["md5"] == hashlib.md5(PNG, usedforsecurity=False).hexdigest()
    assert [chart["values"] for chart in drawn] == [list(OPENED.recent)]


async def test_a_message_whose_image_is_refused_is_delivered(
    session: aiohttp.ClientSession, tmp_path: Path, drawn: list[dict[str, Any]]
) -> None:
    yes = refusal(0, "ok")
    async with FakeWeCom(yes, refusal(45009, "api freq out of limit")) as wecom:
        await notifier(wecom.url, session, tmp_path).send(WeComNotifier.render(OPENED, "k"), "k")
        assert (wecom.requests, len(drawn)) == (2, 1)


async def test_a_real_image_is_taken(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow draws the image")
    async with FakeWeCom() as wecom:
        await notifier(wecom.url, session, tmp_path).send(WeComNotifier.render(OPENED, "k"), "k")
    assert [payload["msgtype"] for payload in wecom.received] == ["markdown", "image"]


def test_an_image_over_2_mb_is_not_sent() -> None:
    assert base64.b64decode(image(b"x" * 2 * 1024 * 1024)["image"]["base64"]).startswith(b"xxx")
    with pytest.raises(PermanentError, match="over WeCom's 2 MB"):
        image(b"x" * (2 * 1024 * 1024 + 1))


@pytest.mark.parametrize(
    ("answer", "error", "text", "wait"),
    [
        (refusal(45009, "api freq out of limit"), TransientError, "45009: too many messages", 60.0),
        (refusal(-1, "system busy"), TransientError, "-1", None),
        (refusal(93000, "invalid webhook url"), PermanentError, "93000: the webhook URL is wrong", None),
        (refusal(40058, "exceed max length"), PermanentError, "40058: WeCom did not understand", None),
        (refusal(4711, KEY), PermanentError, "4711; its documentation", None),
    ],
)
async def test_each_code_is_read_as_it_is_meant(
    answer: Answer,
    error: type[Exception],
    text: str,
    wait: float | None,
    session: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    async with FakeWeCom(answer) as wecom:
        sending = notifier(wecom.url, session, tmp_path).send(WeComNotifier.render(OPENED, "k"), "k")
        await refused(sending, error, text, wait, KEY)
        assert wecom.requests == 1


async def test_a_wrong_key_is_told(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWeCom() as wecom:
        with pytest.raises(PermanentError, match="93000"):
            await notifier(wecom.url + "x", session, tmp_path).send(WeComNotifier.render(OPENED, "k"), "k")


async def test_each_robot_has_a_proxy_of_its_own(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    async with FakeWeCom() as proxy:
        there = f"http://qyapi.weixin.invalid{FakeWeCom.path}"
        robot = notifier(there, session, tmp_path, proxy=proxy.url.removesuffix(FakeWeCom.path))
        await robot.send(WeComNotifier.render(RESOLVED, "k"), "k")
        assert proxy.requests == 1


# ---------------------------------------------------------------------------------------------------- the fake
def test_the_fake_refuses_what_wecom_refuses() -> None:
    png = image(PNG)
    bad: list[dict[str, Any]] = [
        {"msgtype": "markdown", "markdown": {"content": ""}},
        {"msgtype": "markdown", "markdown": {"content": "证" * 1366}},
        {"msgtype": "markdown", "markdown": {"content": "<@all>"}},
        {"msgtype": "markdown", "markdown": {"content": "x"}, "chart": None},
        {"msgtype": "image", "image": {**png["image"], "md5": "0" * 32}},
        {"msgtype": "image", "image": image(b"GIF89a")["image"]},
    ]
    assert problems(png) == []
    assert [bool(problems(payload)) for payload in bad] == [True] * len(bad)
