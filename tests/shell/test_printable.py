"""verlwatch.shell.printable: what is plain stays, what would deceive shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verlwatch.shell.printable import encodable, printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gen took 3.9× as long", "gen took 3.9× as long"),
        ("日本語 café", "日本語 café"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("one\ntwo\r\tthree", r"one\ntwo\r\tthree"),
        ("\u202eevil\u2066\u200b", r"\u202eevil\u2066\u200b"),
        ("a\u2028b\x85c\x00", r"a\u2028b\x85c\x00"),
        ("file\udce9", r"file\udce9"),
    ],
)
def test_text_shows_as(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_is_left_that_breaks_a_line_or_an_encoding(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
    assert "\x1b" not in shown


@given(st.text(st.characters()), st.integers(1, 50))
def test_a_shortened_text_is_never_longer_than_asked(text: str, limit: int) -> None:
    assert len(shortened(text, limit)) <= limit


def test_a_cut_shows() -> None:
    assert shortened("a" * 301) == "a" * 299 + "…"
    assert shortened("a" * 300) == "a" * 300


def test_only_what_utf8_cannot_hold_is_changed_for_programs() -> None:
    assert encodable("a\n\x1b\udce9") == "a\n\x1b\\udce9"
