"""A comparison in words: the same sections as a report, for a terminal or in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from verlwatch.core.phases import STEP
from verlwatch.report import _markdown, _terminal
from verlwatch.report._compare import Comparison
from verlwatch.report._model import RunFacts, Share
from verlwatch.report._sections import Block, Section, Table, shares
from verlwatch.report._words import Words

MOST_KEYS = 40
LEAST_SHARE = 0.01


def versus(found: Comparison, words: Words) -> str:
    """For a terminal."""
    return _drawn(found, words, _terminal.lines)


def versus_markdown(found: Comparison, words: Words) -> str:
    """As Markdown."""
    return _drawn(found, words, _markdown.lines)


def _drawn(found: Comparison, words: Words, lines: Callable[[Section], Iterator[str]]) -> str:
    return "\n".join(line for section in _sections(found, words) for line in lines(section)).strip("\n") + "\n"


def _sections(found: Comparison, words: Words) -> Iterator[Section]:
    yield Section("", (_side("A", found.a, words), _side("B", found.b, words), found.headline))
    if found.attribution is not None:
        table = shares(found.attribution, words, sides=True)
        yield Section(words("Phase by phase"), (table, words(
            "In brackets: 95 % of {kind}; without brackets there are too few steps for an interval.",
            kind=words("bootstrap resamples of both sides, in blocks of neighbouring steps")),
            *_moved(found, words)))  # fmt: skip
    if found.config:
        rows = tuple((d.key, _value(d.a), _value(d.b), ", ".join(d.phases)) for d in found.config[:MOST_KEYS])
        heads = tuple(map(words, ("key", "A", "B", "can change")))
        more = words("and {count} more", count=len(found.config) - MOST_KEYS) if len(found.config) > MOST_KEYS else ""
        yield Section(words("Configured differently"), (Table(heads, rows, "llll", more),))
    if found.caveats:
        yield Section(words("What to doubt"), tuple([caveat] for caveat in found.caveats))


def _side(name: str, run: RunFacts, words: Words) -> str:
    return words("{side}: {name}, {steps} steps, {first} to {last}, verl {release}", side=name, name=run.name,
                 steps=run.steps, first=run.first, last=run.last, release=run.release or "?")  # fmt: skip


def _moved(found: Comparison, words: Words) -> Iterator[Block]:
    """The phases whose interval leaves out 1, with the keys that could explain it."""
    for share in found.attribution.shares if found.attribution else ():
        if share.low is None or share.high is None or share.low <= 1.0 <= share.high or not _matters(share, found):
            continue
        keys = [d.key for d in found.config if share.phase in d.phases]
        word = "slower" if share.low > 1.0 else "faster"
        text = words(f"{{phase}} is {word} in B at equal work, ×{{ratio}} ({{low}} to {{high}})", phase=share.label,
                     ratio=f"{share.ratio:.2f}", low=f"{share.low:.2f}", high=f"{share.high:.2f}")  # fmt: skip
        yield [text, words("could be explained by {keys}", keys=", ".join(keys[:8]))] if keys else [text]


def _matters(share: Share, found: Comparison) -> bool:
    """Whether it is a phase whose change adds or saves a hundredth of a step."""
    step = found.attribution.step if found.attribution else None
    return share.phase != STEP and step is not None and abs(share.efficiency_s or 0.0) >= LEAST_SHARE * step.before_s


def _value(value: str | float | None) -> str:
    return "-" if value is None else str(value)
