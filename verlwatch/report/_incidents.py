"""Incidents as the log tells them: their steps, ratios in seconds and per token, cost, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from statistics import median

from verlwatch.core.incidents import CAUSES
from verlwatch.core.phases import JUDGED, STEP, THROUGHPUT, phase
from verlwatch.core.rules.all_slow import NAME as ALL_SLOW
from verlwatch.core.rules.all_slow import SUBJECT as ALL_PHASES
from verlwatch.core.rules.finished import NAME as FINISHED
from verlwatch.core.statement import Seconds, state
from verlwatch.core.types import Transition
from verlwatch.report._attributed import Stretch, attributed
from verlwatch.report._model import Attribution, Incident
from verlwatch.report._reading import Reading
from verlwatch.report._series import APART, IN_STEP, RESPONSES, TOKENS, between, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

STRETCH = 50
"""At most so many steps on each side of a change make its medians."""
FEW = frozenset({"early_slow"})
_TIMED = frozenset(JUDGED) - {THROUGHPUT}


def incidents(reading: Reading, steps: Steps, gpus: int | None, words: Words) -> tuple[Incident, ...]:
    """Each incident once, in the order in which they opened."""
    lives: dict[str, list[Transition]] = {}
    for transition in reading.transitions:
        if transition.rule != FINISHED:
            lives.setdefault(transition.incident, []).append(transition)
    spans = [(life[0].attempt, life[-1].onset_step, _last(life)) for life in lives.values() if life[0].phase in _TIMED]
    found = [_incident(reading, steps, life, spans, gpus, words) for life in lives.values()]
    return tuple(incident for incident in found if _is_shown(incident, steps))


def _is_shown(incident: Incident, steps: Steps) -> bool:
    """Whether it falls into the steps that are shown; what belongs to no step that is known always does."""
    here = between(steps, incident.attempt)
    if not here:
        return True
    first, last = steps.step[here[0]], steps.step[here[-1]]
    return incident.onset <= last + 1 and (incident.last is None or max(incident.onset, incident.last) >= first)


def _last(life: Sequence[Transition]) -> int | None:
    return life[-1].last_step if life[-1].event == "closed" else None


def _incident(
    reading: Reading,
    steps: Steps,
    life: Sequence[Transition],
    spans: Sequence[tuple[int, int, int | None]],
    gpus: int | None,
    words: Words,
) -> Incident:
    opened, latest = life[0], life[-1]
    if (now := reading.still.get(latest.incident)) is not None:
        latest = replace(latest, ratio=now.ratio, before=now.before, after=now.after)
    onset, last, subject = latest.onset_step, _last(life), latest.phase
    during = between(steps, opened.attempt, onset, last)
    before = _undisturbed(steps, opened.attempt, onset, spans)
    is_timed = subject in _TIMED or latest.rule == ALL_SLOW
    lost = _lost(steps, {t.phase for t in life}, before, during) if is_timed else 0.0
    seconds = _pair(steps, subject, before, during[:STRETCH])
    tokens = _pair(steps, subject, before, during[:STRETCH], per_token=True) if is_timed else (None, None)
    is_apart = subject in APART
    attribution = _attributed(steps, before, during[:STRETCH], words) if is_timed and not is_apart else None
    incident = Incident(
        id=latest.incident,
        rule=latest.rule,
        phase=subject,
        label=words.label(subject),
        severity=latest.severity,
        attempt=opened.attempt,
        onset=onset,
        told=opened.step,
        last=last,
        until=latest.step if latest.event == "closed" else None,
        closed_as=latest.closed_as or "",
        ratio=latest.ratio,
        ratio_seconds=_ratio(*seconds),
        ratio_per_token=_ratio(*tokens),
        before=seconds[0],
        during=seconds[1],
        before_per_token_ms=tokens[0],
        during_per_token_ms=tokens[1],
        lost_s=lost,
        gpu_hours=gpus * lost / 3600 if gpus else None,
        few=latest.rule in FEW,
        title="",
        text="",
        cause=words(CAUSES[latest.rule], phase=subject) if is_timed and latest.rule in CAUSES else "",
        attribution=attribution,
    )
    return replace(incident, title=_title(incident, words), text=_text(incident, latest, words))


def _attributed(steps: Steps, before: Sequence[int], during: Sequence[int], words: Words) -> Attribution | None:
    return attributed(Stretch(steps, before), Stretch(steps, during), words)


def _undisturbed(steps: Steps, attempt: int, onset: int, spans: Sequence[tuple[int, int, int | None]]) -> list[int]:
    """The last steps before an onset that belong to no other incident."""
    found: list[int] = []
    for row in reversed(between(steps, attempt, None, onset - 1)):
        if not _is_in(spans, attempt, steps.step[row]):
            found.append(row)
            if len(found) == STRETCH:
                break
    return found[::-1]


def _is_in(spans: Sequence[tuple[int, int, int | None]], attempt: int, step: int) -> bool:
    return any(a == attempt and first <= step and (last is not None and step <= last) for a, first, last in spans)


def _lost(steps: Steps, subjects: set[str], before: Sequence[int], during: Sequence[int]) -> float:
    """Seconds beyond what the steps' work explains: what baselines expected, the median before where there is none."""
    names = IN_STEP if ALL_PHASES in subjects else tuple(s for s in subjects if s in _TIMED)
    if len(names) > 1 and STEP in names:
        names = tuple(name for name in names if name != STEP)
    total = 0.0
    for name in names:
        column = steps.columns.get(name)
        if column is None:
            continue
        past = [v for row in before if not isnan(v := column.values[row])]
        usual = median(past) if past else None
        for row in during:
            expected = column.expected[row] if column.expected and not isnan(column.expected[row]) else usual
            if expected is not None and not isnan(column.values[row]):
                total += column.values[row] - expected
    return max(0.0, total)


def _pair(
    steps: Steps, name: str, before: Sequence[int], during: Sequence[int], *, per_token: bool = False
) -> tuple[float | None, float | None]:
    """Medians on both sides, in the metric's own unit or in milliseconds per token."""
    values = present(steps, name)
    if not values:
        return None, None
    tokens = present(steps, _tokens_of(name)) or present(steps, TOKENS)
    if per_token and not tokens:
        return None, None

    def side(rows: Sequence[int]) -> float | None:
        found = [
            1000 * values[row] / tokens[row] if per_token else values[row] for row in rows if values[row] == values[row]
        ]
        found = [value for value in found if not isnan(value)]
        return median(found) if found else None

    return side(before), side(during)


def _tokens_of(name: str) -> str:
    return RESPONSES if name in IN_STEP and phase(name).longest else TOKENS


def _ratio(before: float | None, during: float | None) -> float | None:
    return during / before if before and during is not None else None


def _title(incident: Incident, words: Words) -> str:
    span = (
        state("step {onset}", onset=incident.onset)
        if incident.last == incident.onset
        else (
            state("since step {onset}", onset=incident.onset)
            if incident.last is None
            else state("steps {onset} to {last}", onset=incident.onset, last=incident.last)
        )
    )
    if incident.before is None and incident.rule != ALL_SLOW:
        return words("{rule}: {phase}, {span}", rule=incident.rule, phase=incident.phase, span=span)
    return words("{phase} ×{ratio} at equal work, {span}" if not incident.few else "{phase} ×{ratio}, {span}",
                 phase=incident.phase, ratio=f"{incident.ratio:.2f}", span=span)  # fmt: skip


def _text(incident: Incident, latest: Transition, words: Words) -> str:
    if incident.attribution is None:
        return latest.summary
    parts = [incident.attribution.text]
    if incident.few:
        parts.insert(0, words("A judgement from few steps: there is no baseline yet."))
    if incident.lost_s > 0:
        parts.append(
            words("Lost so far: {lost}." if incident.last is None else "Lost: {lost}.", lost=Seconds(incident.lost_s))
        )
    return words.joined(parts)
