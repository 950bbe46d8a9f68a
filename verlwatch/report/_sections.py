"""A report as sections of paragraphs, lists and tables: what terminal text and Markdown have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from verlwatch.core.incidents import quantity
from verlwatch.core.metrics import MEASURES
from verlwatch.core.phases import STEP
from verlwatch.core.statement import Seconds, state
from verlwatch.report._model import Attribution, Gauge, Incident, Report, Share
from verlwatch.report._series import IN_STEP, PRINTED, present
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words

SHORT = {
    "old_log_prob": "old_logp",
    "update_critic": "upd_critic",
    "update_actor": "upd_actor",
    "update_weights": "weights",
}
_NEGLIGIBLE = 0.002
"""A column whose phase never takes more of a step than this says nothing."""
SHOWN = 12
"""Cards that a table shows."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; ``align`` has l or r for each column.  ``wide`` says that the last column takes what is left."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    note: str = ""
    droppable: tuple[int, ...] = ()
    """Columns that may go where there is no room, the first of them first."""


Block = str | list[str] | Table
"""A paragraph, a list, or a table."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


def sections(report: Report, words: Words, last: int) -> Iterator[Section]:
    """Those that have something to say, in the order of the method."""
    yield Section("", (head(report, words), report.headline))
    for title, blocks in (
        ("Last steps", [_steps(report, words, last)] if len(report.steps) else []),
        ("Where the time goes", list(_phases(report, words))),
        ("Changes", list(_changes(report, words))),
        ("From the first steps to the last", list(_over_run(report, words))),
        ("What the log shows", list(_findings(report, words))),
        ("Layout", list(_layout(report, words))),
        ("Memory", list(_memory(report, words))),
        ("Engine", _gauges(report.engine, words)),
        ("Communication", _gauges(report.communication, words)),
        ("Data supply", _gauges(report.supply, words)),
        ("Utilisation", _gauges(report.utilisation, words)),
        ("Cost", list(_cost(report, words))),
        ("What to try", list(_advice(report, words))),
        ("What this log does not tell", list(_missing(report, words))),
    ):
        if blocks:
            yield Section(words(title), tuple(blocks))


def head(report: Report, words: Words) -> str:
    """Name, steps, time, release."""
    run = report.run
    if not run.steps:
        return words("{name}: no step with timing found.", name=run.name)
    planned = state(" of {planned}", planned=run.planned) if run.planned else ""
    parts = [
        words("{name}: {steps} steps, {first} to {last}{planned}", name=run.name, steps=run.steps, first=run.first,
              last=run.last, planned=planned),
        words("{seconds} of training", seconds=Seconds(run.seconds)),
        words("verl {release}", release=run.release) if run.release else words("verl version not told"),
    ]  # fmt: skip
    if run.gpus:
        parts.append(words("{gpus} GPUs ({by})", gpus=run.gpus, by=run.gpus_from))
    if run.attempts > 1:
        parts.append(words("{attempts} attempts", attempts=run.attempts))
    if run.is_async:
        parts.append(words("asynchronous: gen is the time it waits for samples"))
    text = words.listed(parts)
    return words.joined((f"{text}.", run.remark)) if run.remark else text


def _steps(report: Report, words: Words, last: int) -> Table:
    """The last steps: seconds of the phases that say something, which is largest, and remarks."""
    steps = report.steps
    rows = range(max(0, len(steps) - last), len(steps))
    totals = present(steps, PRINTED) or present(steps, STEP)
    weights = {name: _weight(steps, name, rows) for name in IN_STEP if name in steps.columns}
    names = [name for name in IN_STEP if weights.get(name, 0.0) > _NEGLIGIBLE]
    remarks = {remark.row: remark.text for remark in steps.remarks}
    body = tuple(
        (
            str(steps.step[row]),
            cell(totals[row] if totals else None),
            *(cell(steps.columns[name].values[row]) for name in names),
            _largest(steps, row),
            remarks.get(row, ""),
        )
        for row in rows
    )
    heads = (
        words("step"),
        words("total"),
        *(SHORT.get(name, name) for name in names),
        words("largest"),
        words("remark"),
    )
    lightest = tuple(2 + names.index(name) for name in sorted(names, key=lambda n: weights[n]))
    note = words("seconds; largest = share of the phase that takes most of the step without validation and checkpoint")
    return Table(heads, body, "r" * (2 + len(names)) + "ll", note, lightest)


def _weight(steps: Steps, name: str, rows: Sequence[int]) -> float:
    """The largest share of a step that a phase takes."""
    values, whole = steps.columns[name].values, present(steps, STEP)
    found = [values[row] / (whole[row] if whole and whole[row] > 0 else 1.0) for row in rows if not isnan(values[row])]
    return max(found, default=0.0)


def cell(seconds: float | None) -> str:
    """Seconds in a table, - where they are not known: three digits, zeros behind the point too, so that they align."""
    if seconds is None or isnan(seconds):
        return "-"
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:#.3g}" if seconds else "0"  # noqa: PLR2004 - width


def _largest(steps: Steps, row: int) -> str:
    phases = {n: v for n in IN_STEP if n in steps.columns and not isnan(v := steps.columns[n].values[row])}
    whole = present(steps, STEP)
    step = whole[row] if whole else sum(phases.values())
    if not phases or isnan(step) or step <= 0:  # of a line that lost its end nobody knows which was the largest
        return "-"
    name = max(phases, key=phases.__getitem__)
    return f"{SHORT.get(name, name)} {phases[name] / step:.0%}"


def _phases(report: Report, words: Words) -> Iterator[Block]:
    if not report.phases:
        return
    rows = tuple(
        (p.label, cell(p.median_s), cell(p.p90_s), f"{cell(p.longest_s)} ({p.longest_step})", _percent(p.share),
         _number(p.gpu_hours), _number(p.per_token_ms))
        for p in report.phases
    )  # fmt: skip
    heads = ("phase", "median s", "p90 s", "longest s (step)", "share", "GPU-hours", "ms per token")
    yield Table(tuple(map(words, heads)), rows, "lrrrrrr", droppable=(6, 5))


def _changes(report: Report, words: Words) -> Iterator[Block]:
    if not len(report.steps):
        return
    found = report.incidents
    if not found:
        few = "" if report.run.judged else words(" There are too few steps to judge.")
        yield words("No change of any phase stands out.") + few
        return
    yield words("{count} changes:" if len(found) > 1 else "1 change:", count=len(found))
    for incident in found:
        yield [_change(incident, words), *_details(incident, words)]


def _change(i: Incident, words: Words) -> str:
    end = (
        words("closed at step {until}: {how}", until=i.until, how=state(i.closed_as))
        if i.until is not None
        else words("still open")
    )
    return words("{phase}: {rule}, onset step {onset}, told at step {told}, {end}", phase=i.phase, rule=i.rule,
                 onset=i.onset, told=i.told, end=end)  # fmt: skip


def _details(i: Incident, words: Words) -> Iterator[str]:
    if i.attribution is not None or i.before is not None:
        how = "×{ratio} against the few steps before ({severity})" if i.few else "×{ratio} at equal work ({severity})"
        yield words(how, ratio=f"{i.ratio:.2f}", severity=state(i.severity))
    if i.before is not None and i.during is not None and i.ratio_seconds is not None:
        unit = "in seconds" if i.phase not in MEASURES else "as printed"
        before, during = (_value(i.phase, value) for value in (i.before, i.during))
        yield words("median before {before}, during {during}: ×{ratio} " + unit, before=before, during=during,
                    ratio=f"{i.ratio_seconds:.2f}")  # fmt: skip
    if i.ratio_per_token is not None:
        yield words("per token {before} → {during} ms: ×{ratio} per token", before=f"{i.before_per_token_ms:.4g}",
                    during=f"{i.during_per_token_ms:.4g}", ratio=f"{i.ratio_per_token:.2f}")  # fmt: skip
    yield i.text
    if i.cause:
        yield words("likely behind it: {cause}", cause=i.cause)
    if i.attribution is not None:
        yield from (
            words(
                "{label}: {before} before, {after} then",
                label=p.label,
                before=_with(p.before, p.unit),
                after=_with(p.after, p.unit),
            )
            for p in i.attribution.parts
        )


def _value(phase: str, value: float) -> str:
    return quantity(phase, value) if phase in MEASURES else f"{value:.3f} s"


def _with(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}".rstrip()


def _over_run(report: Report, words: Words) -> Iterator[Block]:
    found = report.over_run
    if found is not None:
        (a, b), (c, d) = found.before, found.after
        yield words.joined((words("Steps {a} to {b} against steps {c} to {d}.", a=a, b=b, c=c, d=d), found.text))
        yield shares(found, words)


def shares(found: Attribution, words: Words, *, sides: bool = False) -> Table:
    """What each phase brings of a difference; ``sides`` names them A and B."""
    lines = (*found.shares, *([found.step] if found.step else []))
    rows = tuple(
        (s.label, cell(s.before_s), cell(s.after_s), _signed(s.after_s - s.before_s), _percent(s.part),
         _signed(s.workload_s), _signed(s.efficiency_s), _ratio(s))
        for s in lines
    )  # fmt: skip
    named = ("A s", "B s") if sides else ("before s", "after s")
    heads = ("phase", *named, "more s", "share", "work s", "efficiency s", "× at equal work")
    note = words("work: what more tokens explain; efficiency: what a phase takes longer at equal work")
    return Table(tuple(map(words, heads)), rows, "lrrrrrrr", note)


def _ratio(share: Share) -> str:
    if share.ratio is None:
        return "-"
    around = f" ({share.low:.2f}–{share.high:.2f})" if share.low is not None and share.high is not None else ""
    return f"{share.ratio:.2f}{around}"


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:+.1f}" if abs(seconds) >= 10 else f"{seconds if abs(seconds) >= 1e-6 else 0:+.2g}"  # noqa: PLR2004


def _findings(report: Report, words: Words) -> Iterator[Block]:
    """Those that are not told as changes already."""
    told = {incident.title for incident in report.incidents}
    found = [f for f in report.findings if f.title not in told]
    for finding in found:
        yield [
            words("{title} ({confidence})", title=finding.title, confidence=state(finding.confidence)),
            finding.text,
            *finding.evidence,
        ]


def _layout(report: Report, words: Words) -> Iterator[Block]:
    if report.layout.text:
        yield report.layout.text
    for found in report.mismatches:
        yield [words("{text} ({confidence})", text=found.text, confidence=state(found.confidence))]
    if report.config:
        rows = tuple((fact.key, str(fact.value)) for fact in report.config)
        yield Table((words("key"), words("value")), rows, "ll")


def _memory(report: Report, words: Words) -> Iterator[Block]:
    tracks = [track for track in report.memory if track.points]
    if not tracks:
        return
    shown = sorted(tracks, key=lambda t: -max(p.gb for p in t.points))[:SHOWN]
    rows = []
    for track in (track for track in tracks if track in shown):
        top = max(track.points, key=lambda p: p.gb)
        size = "-" if track.total_gb is None else f"{track.total_gb:.1f}"
        first, final = (f"{point.gb:.1f}" for point in (track.points[0], track.points[-1]))
        rows.append((track.label, words(track.kind), first, final, f"{top.gb:.1f} ({top.step})", size))
    heads = ("card", "counted", "first GB", "last GB", "most GB (step)", "size GB")
    more = (
        words("the {count} cards that hold most, of {all}", count=SHOWN, all=len(tracks)) if len(tracks) > SHOWN else ""
    )
    yield Table(tuple(map(words, heads)), tuple(rows), "llrrrr", more)


def _gauges(gauges: Sequence[Gauge], words: Words) -> list[Block]:
    if not gauges:
        return []
    rows = tuple(
        (g.label, g.unit, f"{g.median:.4g}", f"{g.low:.4g}", f"{g.high:.4g}", str(g.count), g.remark) for g in gauges
    )
    heads = ("what", "unit", "median", "least", "most", "seen", "remark")
    return [Table(tuple(map(words, heads)), rows, "llrrrrl")]


def _cost(report: Report, words: Words) -> Iterator[Block]:
    found = report.cost
    if found is None:
        return
    yield found.text
    lines = (*found.phases, *found.incidents, *([found.lost] if found.lost else []), found.total)
    rows = [(line.label, words.span(line.seconds), _number(line.gpu_hours), _percent(line.share)) for line in lines]
    yield Table(tuple(map(words, ("what", "time", "GPU-hours", "share"))), tuple(rows), "lrrr")


def _advice(report: Report, words: Words) -> Iterator[Block]:
    for said in report.advice:
        yield [
            words("{key} = {value}: try {attempt} ({confidence})", key=said.key, value=said.value, attempt=said.attempt,
                  confidence=state(said.confidence)),
            words("because of {finding}: {why}", finding=said.finding, why=said.why),
            words("proof: {proof}", proof=said.proof),
        ]  # fmt: skip
    if not report.advice and len(report.steps):
        yield words("Nothing: no finding leads to a key that this run's configuration shows.")


def _missing(report: Report, words: Words) -> Iterator[Block]:
    yield from ([words("{what}: {how}", what=m.what, how=m.turn_on)] for m in report.missing)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"  # noqa: PLR2004 - width
