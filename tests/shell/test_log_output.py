"""Our own log never stops the watcher, whoever reads it or does not."""

from __future__ import annotations

import io
import os
import select
import sys

import pytest

from verlwatch.shell._log_output import LogOutput


def say(out: LogOutput, text: str) -> None:
    print(text, file=out, flush=True)


def test_a_line_is_handed_over_whole() -> None:
    stream = io.StringIO()
    say(LogOutput(stream), "one line")
    assert stream.getvalue() == "one line\n"


def test_a_reader_that_sleeps_costs_lines_and_no_time() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        out = LogOutput(stream)
        for _ in range(2000):
            say(out, "x" * 100)
        assert out.dropped > 0
        assert os.read(read, 100) == b"x" * 100
    os.close(read)


def test_a_reader_that_went_away_costs_lines_only() -> None:
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    out = LogOutput(stream)
    say(out, "nobody hears this")
    assert out.dropped == 1
    stream.close()


def test_without_any_output_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    out = LogOutput()
    say(out, "nobody hears this")
    assert (out.dropped, out.isatty()) == (1, False)


def test_a_line_longer_than_the_room_in_a_pipe_is_cut_and_the_next_begins_anew() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        out = LogOutput(stream)
        say(out, "x" * 1_000_000)
        assert out.dropped == 1
        while select.select([read], [], [], 0)[0]:
            os.read(read, 1 << 16)
        say(out, "next")
        assert os.read(read, 100).endswith(b"\nnext\n")
    os.close(read)
