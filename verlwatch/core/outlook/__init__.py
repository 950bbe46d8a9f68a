"""What a run is heading for: memory that fills up, room for checkpoints, the end of its time (docs/FORECASTS.md)."""

from __future__ import annotations

from verlwatch.core.outlook._ahead import Forecasts

__all__ = ["Forecasts"]
