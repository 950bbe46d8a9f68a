"""The report in Chinese: the sentences by their English templates, and what metrics are called."""

from __future__ import annotations

from collections.abc import Mapping

LABELS: Mapping[str, str] = {}
PHRASES: Mapping[str, str] = {}


def seconds(value: float) -> str:
    """Seconds as a person says them."""
    if value < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{value:.3g} 秒"
    if value < 600:  # noqa: PLR2004 - the same
        return f"{value:.0f} 秒"
    return f"{value / 60:.0f} 分钟" if value < 7200 else f"{value / 3600:.1f} 小时"  # noqa: PLR2004 - two hours
