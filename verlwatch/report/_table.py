"""A report for a terminal: plain text, readable without colour, at most WIDTH columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from verlwatch.core.incidents import duration, quantity
from verlwatch.core.phases import PHASES, STEP, THROUGHPUT
from verlwatch.report._history import Found, History, Line

WIDTH = 100
_PHASES = tuple(phase.name for phase in PHASES if phase.judged)
_SHORT = {
    "old_log_prob": "old_logp",
    "update_critic": "upd_critic",
    "update_actor": "upd_actor",
    "update_weights": "weights",
}
_NEGLIGIBLE = 0.002  # a column whose phase never takes more of a step than this says nothing


def render(history: History, last: int) -> str:
    """The report as text: a head line, the table of the last steps, then every change."""
    if not history.lines:
        return (
            f"{history.run}: no step with timing found.\n"
            "verl prints them when trainer.logger contains 'console' (or 'file' for JSONL); "
            "`verlwatch parse LOG` shows what was read.\n"
        )
    return "\n".join([_head(history), "", *_table(history, last), "", *_changes(history)]) + "\n"


def _head(history: History) -> str:
    lines = history.lines
    seconds = sum(line.total if line.total is not None else sum(line.seconds.values()) for line in lines)
    planned = f" of {history.planned}" if history.planned else ""
    attempts = len({line.attempt for line in lines})
    parts = [
        f"{history.run}: {len(lines)} steps, {lines[0].step} to {lines[-1].step}{planned}",
        f"{duration(seconds)} of training",
        f"verl {history.release}" if history.release else "verl version not told",
    ]
    if attempts > 1:
        parts.append(f"{attempts} attempts")
    return ", ".join(parts)


def _table(history: History, last: int) -> Iterator[str]:
    lines = history.lines[-last:]
    columns = [name for name in _PHASES if any(_weighs(line, name) for line in lines)]
    titles = [_SHORT.get(name, name) for name in columns]
    widths = [max(6, len(title)) for title in titles]
    head = " ".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))
    yield f"{'step':>6} {'total':>7} {head}  largest   remark"
    found = history.found()
    for line in lines:
        cells = " ".join(f"{_cell(line.seconds.get(n)):>{w}}" for n, w in zip(columns, widths, strict=True))
        row = f"{line.step:>6} {_cell(line.total):>7} {cells}  {_largest(line):<8}  {_remark(line, found)}"
        yield row.rstrip()[:WIDTH]
    yield "seconds; largest = share of the phase that takes most of the step without validation and checkpoint"


def _weighs(line: Line, name: str) -> bool:
    return line.seconds.get(name, 0.0) > _NEGLIGIBLE * (line.total or sum(line.seconds.values()))


def _cell(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.3g}"  # noqa: PLR2004 - width


def _largest(line: Line) -> str:
    phases = {name: line.seconds[name] for name in _PHASES if name in line.seconds}
    step = line.seconds.get(STEP) or sum(phases.values())
    if not phases or step <= 0:
        return "-"
    name = max(phases, key=lambda n: phases[n])
    return f"{_SHORT.get(name, name)} {phases[name] / step:.0%}"


def _remark(line: Line, found: Sequence[Found]) -> str:
    remarks = [
        f"{f.latest.phase} ×{f.latest.ratio:.2f}"
        for f in found
        if f.opened.attempt == line.attempt
        and f.latest.onset_step <= line.step
        and (f.until is None or line.step < f.until or f.latest.closed_as == "run ended")
    ]
    for name, word in (("testing", "validation"), ("save_checkpoint", "checkpoint")):
        if name in line.seconds:
            remarks.append(f"{word} {duration(line.seconds[name])}")
    return ", ".join(remarks)


def _changes(history: History) -> Iterator[str]:
    found = history.found()
    if not found:
        yield "No change of any phase stands out."
        return
    yield f"{len(found)} change{'s' if len(found) > 1 else ''}:"
    for f in found:
        yield ""
        yield from _change(f)


def _change(f: Found) -> Iterator[str]:
    phase, latest = f.latest.phase, f.latest
    end = f"closed at step {f.until}: {latest.closed_as}" if f.until is not None else "still open"
    yield f"* {phase}: {latest.rule}, onset step {latest.onset_step}, told at step {f.opened.step}, {end}"
    yield f"  ×{latest.ratio:.2f} at equal work ({latest.severity})"
    if f.before and f.during is not None:
        before, during = (quantity(phase, v) if phase == THROUGHPUT else f"{v:.3f} s" for v in (f.before, f.during))
        yield f"  median before {before}, during {during}: ×{f.during / f.before:.2f} in seconds"
    if f.before_per_token and f.during_per_token is not None:
        ratio = f.during_per_token / f.before_per_token
        yield f"  per token {f.before_per_token:.4g} → {f.during_per_token:.4g} ms: ×{ratio:.2f} per token"
    yield from textwrap.wrap(latest.summary, WIDTH, initial_indent="  ", subsequent_indent="  ")
