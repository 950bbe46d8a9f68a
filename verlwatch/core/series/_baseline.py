"""What a step of this series should take, given its work: a regression with autocorrelated noise, learned as it runs.

Idea.  Step times follow the work: twice the tokens take about twice the time.  A detector that looks at bare seconds
calls growing responses a slowdown.  So the log value is explained by its work first, and what is left is *whitened*:
the noise of one step carries over to the next, and correlated noise looks like a lasting change.

Formulas.
    model        y = level + log(1 + a (T/T0 - 1) + b (M/M0 - 1)) + e, T tokens, M longest response, T0 and M0 the usual
                 ones, a and b the shares of the time that grow with them.  An extended Kalman filter (level: a random
                 walk; shares: constants with a prior) whose gain is cut for outliers as in Huber's M-estimate.
    whitening    e is AR(1): innovation u = e - phi e', score = u / sqrt(var u + VPHI e'^2), the second term for the
                 uncertainty of phi itself.
    two pasts    after an outlier the noise either carries over (e' is that step) or the step stood alone (e' decays
                 from the step before): the smaller |u| wins, so that one slow step does not make the next look fast.
    scale        variances are means of squares clipped at 2.5 sigma, corrected for the clipping.

References: West and Harrison, Bayesian Forecasting and Dynamic Models (1997), ch. 4; Huber, Robust Statistics (1981).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from verlwatch.core.series._channel import Seen
from verlwatch.core.series._state import fields_of

WANDER = 1e-4  # standard deviation of the level's random walk, log units per step
VPHI = 0.025  # variance of the estimate of phi
PHI_MAX = 0.92
PRIOR_VARIANCE, PRIOR_WEIGHT = 0.0025, 4.0  # noise of 5 %, worth four steps
FLOOR = 2.5e-5  # smallest variance: half a per cent of noise is always granted
MAD = 1.4826  # a Gaussian's standard deviation over its median absolute deviation
HUBER = 2.0  # sigma beyond which a step pulls the model no further
CLIP = 2.5  # sigma, in all noise that is learned
CLIP2 = CLIP * CLIP
UNCLIP = 1.05  # a Gaussian's variance over that of the clipped one
YOUNG, FULL = 16, 200  # a variance begins worth this many steps, and never becomes worth more than that
FADE = 0.997  # memory of the autocorrelation
LEAST_WORK, MOST_WORK = 0.1, 100.0  # of the usual work; beyond, the log is wrong

# Prior covariance of the two shares (a, ab, b).  Where the longest response counts, how the work is divided between it
# and the tokens is open, but their sum is nearly all of it; elsewhere only the overhead beside the tokens is open.
DIVIDED, TOKENS_ONLY = (0.09, -0.076, 0.09), (0.0225, 0.0, 0.0004)


@dataclass(slots=True)
class Baseline:
    """The learned expectation of one series, in log units.

    ``tokens`` and ``longest`` are the shares a and b, ``usual_*`` the work T0 and M0 (0 where the log does not tell),
    ``cov`` the upper triangle of the covariance of (level, a, b).  ``sd`` is the standard deviation of a residual with
    the uncertainty of the baseline in it, ``sigma`` that of an innovation, ``leverage`` the variance of the
    expectation alone, ``learned`` the number of steps learned from.
    """

    tokens: float
    longest: float
    level: float = 0.0
    usual_tokens: float = 0.0
    usual_longest: float = 0.0
    cov: list[float] = field(default_factory=list)
    variance: float = PRIOR_VARIANCE
    shock: float = PRIOR_VARIANCE
    leverage: float = 0.0
    sd: float = 0.05
    sigma: float = 0.05
    phi: float = 0.3
    products: float = 6.0
    squares: float = 20.0
    last: float = 0.0
    past: float = 0.0
    raw_past: float = 0.0
    learned: int = 0

    @property
    def ready(self) -> bool:
        """Whether it has begun: before, it expects nothing."""
        return bool(self.cov)

    def begin(self, values: Sequence[float], tokens: Sequence[float], longest: Sequence[float]) -> None:
        """Start from a handful of log values and their work (0 where unknown)."""
        self.usual_tokens, self.usual_longest = _usual(tokens), _usual(longest)
        left = [y - math.log(self._work(*self.relative(t, m))) for y, t, m in zip(values, tokens, longest, strict=True)]
        n = len(left)
        self.level = median(left)
        spread = MAD * median(abs(y - self.level) for y in left)
        self.variance = (PRIOR_WEIGHT * PRIOR_VARIANCE + n * spread * spread) / (PRIOR_WEIGHT + n)
        self.shock = self.variance * (1.0 - self.phi * self.phi)
        # Twice the variance of a mean: most of these steps will be learned from once more.
        self.leverage = 2.0 * self.variance / n
        a, ab, b = DIVIDED if self.longest > 0.0 else TOKENS_ONLY
        self.cov = [self.leverage, 0.0, 0.0, a, ab, b]
        self.sd, self.sigma = math.sqrt(self.variance + self.leverage), math.sqrt(self.shock)

    def relative(self, tokens: float, longest: float) -> tuple[float, float]:
        """A step's work relative to the usual work, minus 1; 0 where either is unknown."""
        t, m = self.usual_tokens, self.usual_longest
        tokens = tokens / t if tokens and t else 1.0
        longest = longest / m if longest and m else 1.0
        if tokens > MOST_WORK or longest > MOST_WORK:
            tokens, longest = min(tokens, MOST_WORK), min(longest, MOST_WORK)
        return tokens - 1.0, longest - 1.0

    def expect(self, tokens: float, longest: float) -> float:
        """The log value this relative work should give."""
        return self.level + math.log(self._work(tokens, longest))

    def judge(self, step: int, y: float, tokens: float, longest: float, offset: float) -> Seen:
        """Compare a step with the level ``offset`` log units above the baseline."""
        work = 1.0 + self.tokens * tokens + self.longest * longest
        residual = y - self.level - math.log(work if work > LEAST_WORK else LEAST_WORK) - offset
        phi, past = self.phi, self.past
        innovation = residual - phi * past
        other = residual - phi * self.raw_past
        if abs(other) < abs(innovation):
            innovation, past = other, self.raw_past
        self.raw_past = residual
        self.past = residual if abs(innovation) <= 3.0 * self.sigma else phi * past
        score = innovation / math.sqrt(self.shock + VPHI * past * past)
        return Seen(step, y, tokens, longest, residual, innovation, score)

    def forget_past(self) -> None:
        """The next step does not follow the last one: a restart, or another level."""
        self.past = self.raw_past = 0.0

    def learn(self, seen: Seen) -> None:
        """Take in a step that nothing was wrong with."""
        z = self._filter(seen)
        self.learned += 1
        gain = 1.0 / (YOUNG + self.learned) if self.learned < FULL - YOUNG else 1.0 / FULL
        # Leverage is part of z, so that an uncertain baseline does not look like noise.
        z2 = z * z
        variance = self.variance * (1.0 + gain * (UNCLIP * (z2 if z2 < CLIP2 else CLIP2) - 1.0))
        self.variance = variance = variance if variance > FLOOR else FLOOR
        shock, u2 = self.shock, seen.innovation * seen.innovation
        top = CLIP2 * shock
        shock += gain * (UNCLIP * (u2 if u2 < top else top) - shock)
        self.shock = shock = shock if shock > FLOOR else FLOOR
        self.sd = math.sqrt(variance + self.leverage)
        self.sigma = math.sqrt(shock)
        last = self.last
        self.last = z = CLIP if z > CLIP else -CLIP if z < -CLIP else z
        self.products = products = FADE * self.products + z * last
        self.squares = squares = FADE * self.squares + last * last + 1e-6  # never zero, not even in a constant series
        phi = products / squares
        self.phi = 0.0 if phi < 0.0 else phi if phi < PHI_MAX else PHI_MAX

    def spread(self, variance: float, shock: float) -> None:
        """Judge by another noise from now on: variances of a residual and of an innovation."""
        self.variance, self.shock = variance, shock
        self.sd, self.sigma = math.sqrt(variance + self.leverage), math.sqrt(shock)

    def shift(self, size: float, steps: int) -> None:
        """Move the level for good, by a ``size`` that so many steps showed."""
        self.level += size
        self.cov[0] += self.shock / (1.0 + (1.0 - self.phi) ** 2 * (steps - 1))

    def state(self) -> dict[str, Any]:
        """Everything, exactly."""
        return fields_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Inverse of :meth:`state`."""
        return cls(**state)

    def _work(self, tokens: float, longest: float) -> float:
        return max(LEAST_WORK, 1.0 + self.tokens * tokens + self.longest * longest)

    def _filter(self, seen: Seen) -> float:
        """One step of the Kalman filter; returns the residual before it in standard deviations."""
        c00, c01, c02, c11, c12, c22 = self.cov
        c00 += WANDER * WANDER
        _, y, f1, f2, *_ = seen
        work = 1.0 + self.tokens * f1 + self.longest * f2
        if work < LEAST_WORK:
            work = LEAST_WORK
        f1 /= work
        f2 /= work
        e = y - self.level - math.log(work)
        g0 = c00 + c01 * f1 + c02 * f2
        g1 = c01 + c11 * f1 + c12 * f2
        g2 = c02 + c12 * f1 + c22 * f2
        leverage = g0 + g1 * f1 + g2 * f2
        self.leverage = leverage = leverage if leverage > 0.0 else 0.0
        variance = self.variance
        z = e / math.sqrt(variance + leverage)
        size = abs(z)
        weight = 1.0 / ((variance * size / HUBER if size > HUBER else variance) + leverage)
        k0, k1, k2 = g0 * weight, g1 * weight, g2 * weight
        self.level += k0 * e
        self.tokens += k1 * e
        self.longest += k2 * e
        self.cov = [c00 - k0 * g0, c01 - k0 * g1, c02 - k0 * g2, c11 - k1 * g1, c12 - k1 * g2, c22 - k2 * g2]
        return z


def _usual(work: Sequence[float]) -> float:
    known = [amount for amount in work if amount]
    return median(known) if known else 0.0
