"""Seconds against the tokens of a step: whether a phase got slower, or only had more to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median

from verlwatch.report import _svg_paths as paths
from verlwatch.report._html_charts import is_about
from verlwatch.report._html_tags import Html, figure, tag
from verlwatch.report._model import Report
from verlwatch.report._series import TOKENS, between, present
from verlwatch.report._svg import ACROSS, Frame, axis, framed, value_ticks
from verlwatch.report._words import Words

PHASES = ("gen", "old_log_prob")
_HEIGHT = 220
_ENOUGH = 3
"""Steps that know their tokens, from which on this says something."""


def against_tokens(report: Report, words: Words) -> Iterator[Html]:
    """Seconds over the tokens of the step, those within an incident in another colour and form."""
    steps = report.steps
    tokens = present(steps, TOKENS)
    for name in PHASES:
        values = present(steps, name)
        rows = [r for r in range(len(steps)) if tokens and values and isfinite(tokens[r]) and isfinite(values[r])]
        if len(rows) >= _ENOUGH:
            yield _scatter(report, name, rows, words)


def _scatter(report: Report, name: str, rows: Sequence[int], words: Words) -> Html:
    steps = report.steps
    tokens, values = steps.columns[TOKENS].values, steps.columns[name].values
    along, up = axis((tokens[r] for r in rows), 5, from_zero=False), axis(values[r] for r in rows)
    during = _changed(report, name)

    def path(chosen: Sequence[int], kind: str) -> Html:
        points = [(ACROSS * along.part(tokens[r]), _HEIGHT * (1 - up.part(values[r]))) for r in chosen]
        return tag("path", class_=f"dots {kind}", d=Html(paths.dots(list(paths.spread(points)))))

    usual, odd = [r for r in rows if r not in during], [r for r in rows if r in during]
    frame = Frame(f"c-{name}-tokens", _HEIGHT, up, "s", value_ticks(along))
    chart = framed(frame, path(usual, "usual"), path(odd, "odd"))
    keys = [tag("li", tag("i", class_="usual"), words("as usual"), tag("b", f"{len(usual):,}"))]
    if odd:
        keys.append(tag("li", tag("i", class_="odd"), words("within a change"), tag("b", f"{len(odd):,}")))
    per_token = {True: [1000 * values[r] / tokens[r] for r in odd if tokens[r] > 0],
                 False: [1000 * values[r] / tokens[r] for r in usual if tokens[r] > 0]}  # fmt: skip
    said = words.listed(
        words("{ms} ms per token within a change" if kind else "{ms} ms per token as usual", ms=f"{median(ms):.4g}")
        for kind, ms in sorted(per_token.items())
        if ms
    )
    title = words("{phase}: seconds against tokens of the step", phase=words.label(name))
    return figure(
        "scatter",
        frame.name,
        title,
        chart,
        said,
        legend=tag("ul", *keys, class_="legend"),
        data_of=name,
        data_along=f"{along.low!r} {along.high!r}",
        data_up=f"{up.low!r} {up.high!r}",
    )


def _changed(report: Report, name: str) -> set[int]:
    """Steps within a change of the phase; one that was accepted as the new pace lasts to the end of its attempt."""
    return {
        row
        for incident in report.incidents
        if is_about(incident, (name,))
        for row in between(
            report.steps,
            incident.attempt,
            incident.onset,
            None if incident.closed_as == "accepted" else incident.last,
        )
    }
