"""A report for a terminal: plain text, readable without colour, at most WIDTH columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from verlwatch.core.incidents import duration, quantity
from verlwatch.core.phases import PHASES, STEP, THROUGHPUT
from verlwatch.report._history import Found, History, Line
from verlwatch.shell.printable import printable

JUDGED_FROM = 20
"""Steps that a baseline needs (docs/DETECTION.md)."""
WIDTH = 100
_PHASES = tuple(phase.name for phase in PHASES if not phase.apart)
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
            f"{printable(history.run)}: no step with timing found.\n"
            "verl prints them when trainer.logger contains 'console' (or 'file' for JSONL); "
            "`verlwatch parse LOG` shows what was read.\n"
        )
    return "\n".join([_head(history), "", *_table(history, last), "", *_changes(history)]) + "\n"


def _head(history: History) -> str:
    lines = history.lines
    seconds = sum(line.length for line in lines)
    planned = f" of {history.planned}" if history.planned else ""
    attempts = len({line.attempt for line in lines})
    parts = [
        f"{printable(history.run)}: {len(lines)} steps, {lines[0].step} to {lines[-1].step}{planned}",
        f"{duration(seconds)} of training",
        f"verl {history.release}" if history.release else "verl version not told",
    ]
    if attempts > 1:
        parts.append(f"{attempts} attempts")
    return ", ".join(parts)


def _table(history: History, last: int) -> Iterator[str]:
    lines = history.lines[-last:]
    largest = [_largest(line) for line in lines]
    wide = max(map(len, ("largest", *largest)))
    columns = _columns(lines, WIDTH - len("  step   total    remark") - wide)
    head = " ".join(f"{_SHORT.get(name, name):>{width}}" for name, width in columns.items())
    yield f"{'step':>6} {'total':>7} {head}  {'largest':<{wide}}  remark"
    found = history.found()
    for line, share in zip(lines, largest, strict=True):
        cells = " ".join(f"{_cell(line.seconds.get(name)):>{width}}" for name, width in columns.items())
        row = f"{line.step:>6} {_cell(line.total):>7} {cells}  {share:<{wide}}"
        remark = _remark(line, found)
        if len(row) + 2 + len(remark) <= WIDTH:
            yield f"{row}  {remark}".rstrip()
        else:
            yield row.rstrip()
            yield from (part.rjust(WIDTH) for part in textwrap.wrap(remark, WIDTH))
    yield "seconds; largest = share of the phase that takes most of the step without validation and checkpoint"


def _columns(lines: Sequence[Line], room: int) -> dict[str, int]:
    """Name and width of the phases that say something, in the order of a step; the lightest go if not all fit."""
    weights = {name: max(line.seconds.get(name, 0.0) / (line.length or 1.0) for line in lines) for name in _PHASES}
    widths = {name: max(6, len(_SHORT.get(name, name))) for name in _PHASES if weights[name] > _NEGLIGIBLE}
    for name in sorted(widths, key=weights.__getitem__):
        if sum(widths.values()) + len(widths) <= room:
            break
        del widths[name]
    return widths


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
        and (f.last is None or line.step <= f.last)
    ]
    for name, word in (("testing", "validation"), ("save_checkpoint", "checkpoint")):
        if name in line.seconds:
            remarks.append(f"{word} {duration(line.seconds[name])}")
    return ", ".join(remarks)


def _changes(history: History) -> Iterator[str]:
    found = history.found()
    if not found:
        few = len(history.lines) < JUDGED_FROM
        yield "No change of any phase stands out." + (" There are too few steps to judge." if few else "")
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
    yield from textwrap.wrap(printable(latest.summary), WIDTH, initial_indent="  ", subsequent_indent="  ")
