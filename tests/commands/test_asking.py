"""What the commands that change something say: ids, times, what a silence covers, tokens."""

from __future__ import annotations

from typing import Any

import pytest

from verlwatch.cli import main
from verlwatch.commands import _daemon
from verlwatch.commands.silence import _covers
from verlwatch.shell.http import changes

URL = ("--url", "http://127.0.0.1:9")


@pytest.mark.parametrize("key", ["", "../x", "a b", "a" * 65])
@pytest.mark.parametrize(("words", "what"), [(("silence", "remove"), "a silence"), (("accept",), "an incident")])
def test_what_is_no_id_is_named(
    key: str, words: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, key, *URL]) == 1
    assert f"{key!r} is no id of {what}" in capsys.readouterr().err


def test_a_negative_time_is_told_what_a_time_looks_like(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["silence", "add", "--run", "a", "--for", "-1h", *URL])
    assert end.value.code == 2
    assert "such as 2h or 30m, and not negative" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("covers", "words"),
    [
        ({"runs": [], "incidents": 0}, "covers no run at present"),
        ({"runs": ["q"], "incidents": 1}, "covers run q: 1 open incident"),
        ({"runs": ["q"], "incidents": 0}, "covers run q: no open incidents"),
        ({"runs": ["q", "r"], "incidents": 3}, "covers 2 runs: 3 open incidents"),
        (None, "it is not known what it covers"),
    ],
)
def test_what_a_silence_covers_is_said(covers: Any, words: str) -> None:
    assert _covers(covers) == words


def test_a_command_waits_longer_than_the_daemon_does_for_its_disk() -> None:
    assert _daemon.CHANGE_TIMEOUT_S > changes.ANSWER_S
