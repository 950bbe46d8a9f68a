"""What holds for every kind of line, present and future."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from verlwatch.core import lines
from verlwatch.core.lines import (
    KINDS,
    Fact,
    Kind,
    Line,
    Numbers,
    Reader,
    Take,
    checkpoint,
    config_dump,
    file_logger,
    final_validation,
    hydra_config,
    hydra_overrides,
    plan,
    resume,
    step_metrics,
)
from verlwatch.core.lines._envelope import messages
from verlwatch.core.types import Writer

CORPUS = Path(__file__).parents[2] / "corpus"
FOLDER = Path(lines.__file__).parent
SNIPPETS: tuple[str, ...] = (
    " - ",
    ":",
    "step:",
    "(",
    ")",
    "np.float64(",
    "%|",
    "|",
    "[",
    "]",
    "\r",
    '"',
    "{",
    "}",
    "\\",
    "nan",
    "9" * 40,
)
SNIPPETS += ("\x00", "\ufffd", "\N{ARABIC-INDIC DIGIT FIVE}", " [repeated 9x across cluster]", "(A pid=1) ", ": ", "/")

OF_THE_TRAINER = (
    *(step_metrics, file_logger, plan, resume, checkpoint, final_validation),
    *(config_dump, hydra_config, hydra_overrides),
)

OF_SAMPLES = {"actor", "decoded_sample", "reward_timeout"}
"""What is heard from workers that score samples and run tools."""

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)


def corpus() -> list[str]:
    return [
        text.decode(errors="replace")
        for path in sorted(CORPUS.glob("*.log"))
        for text in path.read_bytes().split(b"\n")
    ]


def mutated(rnd: random.Random, text: str) -> str:
    for _ in range(rnd.randint(1, 4)):
        at, to = sorted((rnd.randint(0, len(text)), rnd.randint(0, len(text))))
        text = rnd.choice(
            (
                text[:at],
                text[at:],
                text[:at] + text[to:],
                text[:at] + rnd.choice(SNIPPETS) + text[at:],
                text[:to] + text[at:],
            )
        )
    return text


def hostile(kind: Kind) -> Iterator[str]:
    """Long lines on which a pattern that backtracks would not end."""
    for needle in kind.NEEDLES:
        start = needle.decode()
        for part in (
            *SNIPPETS,
            " ",
            "a",
            "1",
            "1:",
            "a/b:1 - ",
            "a:",
            "global_step_1",
            "step:1 - ",
            "33%|x| 1/3 [",
            "\t",
        ):
            yield start + part * (30_000 // len(part))
            yield "step:1 - a/b:" + part * (30_000 // len(part)) + start


@every_kind
def test_a_kind_is_a_module_named_as_it_says(kind: Any) -> None:
    assert isinstance(kind, ModuleType)
    assert (FOLDER / f"{kind.NAME}.py").samefile(str(kind.__file__))
    assert kind.__doc__
    assert "Source: " in kind.__doc__


def test_every_public_file_is_a_kind() -> None:
    assert {path.stem for path in FOLDER.glob("[!_]*.py")} == {kind.NAME for kind in KINDS}


@every_kind
def test_the_needles_stand_in_every_line_of_the_kind(kind: Kind) -> None:
    """Also in the first line of those that say something together with others."""
    found = 0
    for text in corpus():
        if any(kind.parse(line) is not None for line in messages(text)):
            found += 1
            assert any(needle in text.encode() for needle in kind.NEEDLES)
    assert found
    assert all(len(needle) >= 5 for needle in kind.NEEDLES), "a short needle stands in too many lines"


@every_kind
def test_a_kind_never_raises_on_mutated_lines(kind: Kind) -> None:
    rnd = random.Random(kind.NAME)
    texts = corpus()
    own = [text for text in texts if any(needle.decode() in text for needle in kind.NEEDLES)]
    read = 0
    for _ in range(3000):
        for line in messages(mutated(rnd, rnd.choice(rnd.choice((texts, own))))):
            said = kind.parse(line)
            read += said is not None
            if said is not None and not isinstance(said, Numbers | Fact):
                for text in (mutated(rnd, rnd.choice(texts)) for _ in range(rnd.randint(0, 3))):
                    assert said.take(Line(text, line.writer), None) in Take
                said = said.close()
            if isinstance(said, Numbers):
                assert {float, int}.issuperset(map(type, said.values.values()))
            elif said is not None:
                assert {float, int, str}.issuperset(map(type, said.attributes.values()))
                assert all(len(value) <= 300 for value in said.attributes.values() if isinstance(value, str))
    assert read > 5, "the mutations should leave some lines readable"


@every_kind
def test_a_kind_has_no_slow_pattern(kind: Kind) -> None:
    """30 kB of one snippet take milliseconds; a pattern that backtracks would take many seconds."""
    for text in hostile(kind):
        begin = time.process_time()
        reader = Reader("run.log", kinds=(kind,))
        reader.feed(text.encode() + b"\n" + text.encode() + b"\n", 0.0)
        reader.finish(0.0)
        assert time.process_time() - begin < 1.5, f"{text[:60]!r} took {time.process_time() - begin:.1f} s"
        assert reader.counts.broken == 0, reader.counts.sample


@pytest.mark.parametrize("kind", OF_THE_TRAINER, ids=lambda kind: kind.NAME)
def test_rollout_workers_are_no_trainers(kind: Kind) -> None:
    """A line of the trainer printed by a process that prints model output does not count."""
    for text in corpus():
        for line in messages(text):
            if not line.is_bar:
                assert kind.parse(Line(line.text, Writer("AgentLoopWorker", 7), line.cut)) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.NAME not in OF_SAMPLES], ids=lambda kind: kind.NAME)
def test_workers_that_show_samples_are_not_believed(kind: Kind) -> None:
    """They have no device and no engine, and print what models and sandboxes say."""
    for text in corpus():
        for line in messages(text):
            if not line.is_bar:
                assert kind.parse(Line(line.text, Writer("RewardLoopWorker", 7), line.cut)) is None
