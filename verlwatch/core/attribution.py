"""Where a slowdown comes from: which phase brings how many seconds, and how much of it is nothing but more work.

Two stretches of steps are compared, phase by phase, by their medians.  A phase whose work has grown by a factor ``w``
is expected to take ``w`` times as long; what it takes beyond that it has lost in efficiency:

    workload = before * (w - 1)      efficiency = after - before * w      ratio at equal work = after / (before * w)

The ratio at equal work is the median, over the steps, of seconds per second expected.  What is expected comes from the
best that is known of the two stretches: what the run's own baseline expected of each step's work (docs/DETECTION.md);
else a regression over the earlier stretch; else, with fewer steps than that needs, the tokens themselves (response
tokens for generation, all tokens for the rest, as verl's ``timing_per_token_ms`` has it).  Where the log names no
tokens, nothing is known of the work, and seconds are not split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, isfinite, log, sqrt
from statistics import median
from typing import Literal, NamedTuple

from verlwatch.core.phases import PHASES, STEP, phase
from verlwatch.core.series import Baseline
from verlwatch.core.types import Workload

Basis = Literal["baseline", "regression", "per token", "seconds"]

ENOUGH = 20
"""Steps that a regression needs; with fewer, tokens are all that is known of the work."""
BEGIN = 12
"""Steps that a regression begins from."""
MOVED = 0.02
"""Share of a step that a phase must bring to be called the one that moved."""
_IN_STEP = tuple(p.name for p in PHASES if not p.apart)


class Row(NamedTuple):
    """One step: seconds by phase (and STEP), its work, response tokens, and what the baselines expected of it."""

    seconds: Mapping[str, float]
    work: Workload = Workload()
    responses: float | None = None
    expected: Mapping[str, float] = {}


class Share(NamedTuple):
    """What a phase brings: medians of both stretches, its ``part`` of the step's difference (None if there is none).

    ``work`` is the factor w of its work, None where it is not known.
    """

    phase: str
    before_s: float
    after_s: float
    part: float | None
    work: float | None

    @property
    def difference_s(self) -> float:
        """Seconds more than before."""
        return self.after_s - self.before_s

    @property
    def workload_s(self) -> float | None:
        """Of them: what more work explains."""
        return None if self.work is None else self.before_s * (self.work - 1.0)

    @property
    def efficiency_s(self) -> float | None:
        """Of them: what it takes longer at equal work."""
        return None if self.work is None else self.after_s - self.before_s * self.work

    @property
    def ratio(self) -> float | None:
        """After ÷ before, at equal work."""
        return None if not self.work or self.before_s <= 0.0 else self.after_s / (self.before_s * self.work)


class Difference(NamedTuple):
    """Between two stretches of steps.

    ``step`` is the whole step (the sum of its phases where none is printed), ``shares`` its phases, those that bring
    most first, ``other_s`` what no phase explains, ``lead`` the phase that moved (empty if none did).
    """

    basis: Basis
    step: Share
    shares: tuple[Share, ...]
    other_s: float | None
    tokens: float | None
    longest: float | None
    lead: str


def attribute(before: Sequence[Row], after: Sequence[Row]) -> Difference | None:
    """Where the difference comes from; None where one of the stretches shows no phase."""
    names = [n for n in _IN_STEP if _seen(before, n) and _seen(after, n)]
    if not names:
        return None
    basis = _basis(before, after, names)
    has_step = bool(_seen(before, STEP) and _seen(after, STEP))
    totals = {name: (_median(before, name), _median(after, name)) for name in (*names, *([STEP] if has_step else []))}
    step_before, step_after = totals.get(STEP) or (
        sum(totals[n][0] for n in names),
        sum(totals[n][1] for n in names),
    )
    more = step_after - step_before
    is_other = abs(more) > MOVED * step_before
    shares = [
        Share(name, *totals[name], (totals[name][1] - totals[name][0]) / more if is_other else None, work)
        for name in names
        for work in [_work(basis, name, before, after)]
    ]
    shares.sort(key=lambda share: -share.difference_s)
    works = [share.workload_s for share in shares]
    known = None if basis == "seconds" else sum(w for w in works if w is not None)
    step = Share(
        STEP,
        step_before,
        step_after,
        None,
        None if known is None or step_before <= 0 else 1.0 + known / step_before,
    )
    return Difference(
        basis,
        step,
        tuple(shares),
        more - sum(share.difference_s for share in shares) if has_step else None,
        _ratio([r.work.tokens for r in before], [r.work.tokens for r in after]),
        _ratio([r.work.longest for r in before], [r.work.longest for r in after]),
        shares[0].phase if shares[0].difference_s > MOVED * step_before else "",
    )


def equal_work(name: str, rows: Sequence[Row]) -> Callable[[Row], float]:
    """What a phase should take for a step's work, learned from ``rows`` in their order: a regression, or tokens alone.

    With fewer steps than ENOUGH it is the median per token, and plain seconds where no tokens are named.
    """
    rows = [row for row in rows if row.seconds.get(name, 0.0) > 0.0]
    if len(rows) >= ENOUGH and any(row.work.tokens for row in rows):
        return _regression(name, rows)
    rates = [row.seconds[name] / tokens for row in rows if (tokens := _tokens(name, row))]
    if rates and len(rates) == len(rows):
        rate = median(rates)
        return lambda row: rate * (_tokens(name, row) or 0.0)
    usual = median([row.seconds[name] for row in rows]) if rows else 0.0
    return lambda _row: usual


def doubt(name: str, rows: Sequence[Row], others: Sequence[Row]) -> float:
    """By how much ``equal_work`` may be wrong about the work of ``others``: the standard deviation of a logarithm.

    It is that of the shares that grow with the work, times how far the two works are apart; the level is the same.
    Noise that carries over from step to step makes the steps tell less of them.
    """
    rows = [row for row in rows if row.seconds.get(name, 0.0) > 0.0]
    if len(rows) < ENOUGH or not any(row.work.tokens for row in rows) or not others:
        return 0.0
    baseline = _fitted(name, rows)
    a, b = (_slopes(baseline, side) for side in (rows, others))
    along, across = b[0] - a[0], b[1] - a[1]
    *_, c11, c12, c22 = baseline.cov
    variance = along * along * c11 + 2 * along * across * c12 + across * across * c22
    return sqrt(max(0.0, variance) * (1 + baseline.phi) / (1 - baseline.phi))


def _slopes(baseline: Baseline, rows: Sequence[Row]) -> tuple[float, float]:
    """By how much the logarithm grows with each share, at the median work."""
    relative = [baseline.relative(row.work.tokens or 0.0, row.work.longest or 0.0) for row in rows]
    tokens, longest = median([t for t, _ in relative]), median([m for _, m in relative])
    work = 1.0 + baseline.tokens * tokens + baseline.longest * longest
    return (tokens / work, longest / work) if work > 0.0 else (0.0, 0.0)


def _regression(name: str, rows: Sequence[Row]) -> Callable[[Row], float]:
    baseline = _fitted(name, rows)
    return lambda row: exp(baseline.expect(*baseline.relative(row.work.tokens or 0.0, row.work.longest or 0.0)))


def _fitted(name: str, rows: Sequence[Row]) -> Baseline:
    shares = phase(name)
    baseline = Baseline(shares.tokens, shares.longest)
    points = [(log(row.seconds[name]), row.work.tokens or 0.0, row.work.longest or 0.0) for row in rows]
    ys, tokens, longest = zip(*points[:BEGIN], strict=True)
    baseline.begin(ys, tokens, longest)
    for at, (y, t, m) in enumerate(points):
        baseline.learn(baseline.judge(at, y, *baseline.relative(t, m), 0.0))
    return baseline


def _basis(before: Sequence[Row], after: Sequence[Row], names: Sequence[str]) -> Basis:
    largest = max(names, key=lambda n: abs(_median(after, n) - _median(before, n)))
    if _expected(before, largest) and _expected(after, largest):
        return "baseline"
    if not all(any(row.work.tokens for row in rows) for rows in (before, after)):
        return "seconds"
    return "regression" if len(_seen(before, largest)) >= ENOUGH else "per token"


def _work(basis: Basis, name: str, before: Sequence[Row], after: Sequence[Row]) -> float | None:
    """The factor by which a phase's work has grown: what is left of its seconds' ratio at equal work.

    That ratio is the median of seconds per expected second after, over the same before: step by step, so that chance
    in the work of single steps does not count as efficiency.
    """
    if basis == "seconds":
        return None
    earlier_s, later_s = _median(before, name), _median(after, name)
    expect = _expectation(basis, name, before, after)
    relative = [_relative(name, rows, expect) for rows in (before, after)]
    if not all(relative) or earlier_s <= 0.0 or later_s <= 0.0:
        return 1.0
    return later_s / earlier_s * median(relative[0]) / median(relative[1])


def _expectation(basis: Basis, name: str, before: Sequence[Row], after: Sequence[Row]) -> Callable[[Row], float | None]:
    """What a phase should take for a step's work, up to a factor; None for a step where that is not known."""
    if basis == "baseline" and _expected(before, name) and _expected(after, name):
        return lambda row: row.expected.get(name)
    if basis != "per token" and len(_seen(before, name)) >= ENOUGH:
        return equal_work(name, before)
    return (lambda row: _tokens(name, row)) if phase(name).tokens else (lambda _row: 1.0)


def _relative(name: str, rows: Sequence[Row], expect: Callable[[Row], float | None]) -> list[float]:
    """Seconds per expected second of each step that has both."""
    found = ((row.seconds.get(name, 0.0), expect(row)) for row in rows if name in row.seconds)
    return [seconds / e for seconds, e in found if e is not None and e > 0.0 and seconds > 0.0]


def _tokens(name: str, row: Row) -> float | None:
    """The tokens that a phase works on; None where it follows none, or the log does not name them."""
    known = phase(name)
    if not known.tokens:
        return None
    return (row.responses if known.longest and name != STEP else None) or row.work.tokens


def _seen(rows: Sequence[Row], name: str) -> list[float]:
    return [s for row in rows if (s := row.seconds.get(name)) is not None and s >= 0.0]


def _expected(rows: Sequence[Row], name: str) -> list[float]:
    """Empty unless the baseline expected something of most of the steps that have the phase."""
    found = [e for row in rows if name in row.seconds and (e := row.expected.get(name)) is not None and e > 0.0]
    return found if 2 * len(found) >= len(_seen(rows, name)) else []


def _median(rows: Sequence[Row], name: str) -> float:
    return median(_seen(rows, name))


def _ratio(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    earlier, later = ([v for v in values if v is not None and isfinite(v) and v > 0.0] for values in (before, after))
    return median(later) / median(earlier) if earlier and later else None
