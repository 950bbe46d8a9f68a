"""The life of a run, by the clock: started, slow, stuck, dying, dead, finished (docs/LIFE.md).

`_clocks` keep progress and activity apart, `_allowed` says how late is late, `_stage` what the run is doing, `_sight`
how its logs are seen, `_evidence` what says that it is dead, `_ledger` what it has done.
"""

from __future__ import annotations

from verlwatch.core.life._life import OBSERVED, Life, StateChange, is_observed
from verlwatch.core.life._sight import AGENT, Sight

__all__ = ["AGENT", "OBSERVED", "Life", "Sight", "StateChange", "is_observed"]
