"""Numbers of one series -> change points: a baseline of what its work explains, and channels that judge the rest."""

from verlwatch.core.series._baseline import Baseline
from verlwatch.core.series._watch import DETECTORS, STATE_VERSION, Watch

__all__ = ["DETECTORS", "STATE_VERSION", "Baseline", "Watch"]
