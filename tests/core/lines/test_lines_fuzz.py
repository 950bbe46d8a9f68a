"""Bytes that are no log: nothing raises, memory stays bounded, and a number in a record stands in the bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SOAK
from verlwatch.core.lines import Line, Numbers, Reader, Take, step_metrics
from verlwatch.core.types import Record

EXAMPLES = 10_000 if SOAK else 100
SPLICES = 2_000 if SOAK else 20
CORPUS = Path(__file__).parents[2] / "corpus"
KEYS = st.from_regex(r"[a-z]{1,8}/[a-z@:. ]{0,12}[a-z]", fullmatch=True).filter(lambda key: " - " not in key)
FLOATS = st.floats(allow_nan=False)


@given(st.binary(max_size=2000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    reader = Reader("run.log", line_limit=300)
    reader.feed(data, 0.0)
    reader.finish(0.0)
    assert reader.counts.broken == 0
    assert reader.counts.lines <= data.count(b"\n")
    assert reader.counts.nul == data.count(b"\0")


@pytest.mark.parametrize("seed", range(SPLICES))
def test_spliced_logs_are_read_without_an_error_and_alike_in_any_pieces(
    seed: int, read: Callable[..., list[Record]]
) -> None:
    rnd = random.Random(seed)
    logs = [path.read_bytes() for path in sorted(CORPUS.glob("*.log"))]
    data = b""
    for _ in range(40):
        piece = rnd.choice(logs)
        at = rnd.randint(0, len(piece))
        data += piece[at : at + rnd.randint(0, 400)] + rnd.choice((b"", b"\n", b"\r", b"\0", b"\xf0\x9f"))
    whole = read(data, line_limit=1000)
    assert repr(read(data, line_limit=1000, piece=rnd.randint(1, 50))) == repr(whole)
    assert whole


@given(
    st.dictionaries(KEYS, FLOATS, min_size=1, max_size=8),
    st.sampled_from(["{!r}", "np.float64({!r})", "{:.3f}"]),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_verl_would_print_is_read_back_to_the_digit(numbers: dict[str, float], form: str) -> None:
    printed = {key: form.format(value) for key, value in numbers.items()}
    text = "step:3 - timing_s/gen:1.250 - " + " - ".join(f"{key}:{value}" for key, value in printed.items())
    said = step_metrics.parse(Line(text + " - timing_s/step:9.000"))
    assert isinstance(said, Numbers)
    expected = {key: float(value.removeprefix("np.float64(").removesuffix(")")) for key, value in printed.items()}
    assert said.values == {"timing_s/gen": 1.25, **expected, "timing_s/step": 9.0}


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_text_continues_a_line_unless_it_is_made_of_items(text: str, message: str) -> None:
    said = step_metrics.parse(Line(f"step:3 - timing_s/gen:1.5{text}", cut=True))
    if said is not None and not isinstance(said, Numbers) and said.take(Line(message), None) is not Take.IGNORED:
        assert ":" in text + message
        assert not any(character.isspace() for character in message.replace(" - ", ""))
