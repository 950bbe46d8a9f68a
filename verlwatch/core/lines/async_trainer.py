"""What the asynchronous trainers tell of themselves: who waits for whom, and how old the samples are.

    [FullyAsyncTrainer] Loop collection completed: 64/64 samples, total wait time: 12.34 seconds. mq_len: 3
    [FullyAsyncTrainer] _fit_update_weights, timing_s/param_sync: 1.2345 seconds self.current_param_version: 3
    [FullyAsyncRollouter][Public][reset_staleness] reset staleness_samples to: 5 idle_ratio: 0.1234 ...
    [FullyAsyncRollouter][MonitorLoop][Statistics] {'count/dropped_stale_samples': 0,           and eleven lines more
    Parameter version updated from 0 to 1                                            MessageQueue, before 0.7
    pending: 3, running: 5, finished: 2, failure: 0                                  replay buffer of the 0.9 v1 trainer

Source: verl ``experimental/fully_async_policy`` (``fully_async_trainer.py``, ``fully_async_rollouter.py``,
``message_queue.py``) and ``trainer/ppo/v1/replay_buffer.py`` of 0.9.1; ``recipe/fully_async_policy`` before.  The
statistics are printed by a loop of their own, also while nothing moves: they are no sign of progress.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._line import Fact, Line, Take
from verlwatch.core.lines._quantity import NUMBER, number

NAME: Final = "async_trainer"
NEEDLES: Final = (b"[FullyAsync", b"Parameter version updated from ", b", failure: ")

_N = rf"(-?{NUMBER})"
_TEXT = 2000  # a line of the statistics holds one of them
_STATISTICS = "[FullyAsyncRollouter][MonitorLoop][Statistics] {"
_ITEM = re.compile(rf"'((?:monitor|count|static)/[\w/]{{1,60}})': {_N}(?=[,}}])")
_FORMS: tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (what, re.compile(pattern), names)
    for what, pattern, names in (
        (
            "collected",
            rf"\[FullyAsyncTrainer\] Loop collection completed: {_N}/{_N} samples, "
            rf"total wait time: {_N} seconds\. mq_len: {_N}$",
            ("samples", "required", "wait_s", "queue"),
        ),
        (
            "param_sync",
            rf"\[FullyAsyncTrainer\] _fit_update_weights, timing_s/param_sync: {_N} seconds "
            rf"self\.current_param_version: {_N}$",
            ("param_sync_s", "version"),
        ),
        (
            "local_step",
            rf"\[FullyAsyncTrainer\] global_steps: {_N} local_trigger_step: {_N} trigger_parameter_sync_step: {_N} ",
            ("global_steps", "local_step", "steps_per_sync"),
        ),
        (
            "staleness_reset",
            rf"\[FullyAsyncRollouter\]\[Public\]\[reset_staleness\] reset staleness_samples to: {_N} "
            rf"idle_ratio: {_N} (?:step_generated_samples\(this_step\): {_N} rollout_resource_utilization: {_N} )?",
            ("stale_samples", "idle_ratio", "generated_samples", "utilization"),
        ),
        (
            "waited",
            rf"\[FullyAsyncRollouter\] wait_for_enough_samples: queue_size={_N} >= required={_N}, "
            rf"done\. waited={_N}s$",
            ("queue", "required", "wait_s"),
        ),
        (
            "version",
            rf"(?:\[FullyAsyncRollouter\](?:\[\w+\]){{0,2}} )?Parameter version updated from {_N} to {_N}(?= ?,|$)"
            rf"(?: ?, ?reset staleness_samples to: {_N},(?: ?idle_ratio: {_N}$)?)?",
            ("from", "version", "stale_samples", "idle_ratio"),
        ),
        (
            "replay_buffer",
            rf"pending: {_N}, running: {_N}, finished: {_N}, failure: {_N}$",
            ("pending", "running", "finished", "failed"),
        ),
    )
)


class _Statistics:
    """The rollouter's counters, pretty-printed one a line."""

    LINES = 200
    BYTES = 1 << 16

    def __init__(self, text: str) -> None:
        self._values = _items(text)

    def take(self, line: Line, said: object, /) -> Take:
        """The next lines each begin with a blank and a quoted key."""
        if said is not None or not line.text.startswith(" '"):
            return Take.IGNORED
        self._values |= _items(line.text)
        return Take.DONE if line.text.rstrip().endswith("}") else Take.TAKEN

    def close(self) -> Fact | None:
        """The counters that came, under their last names."""
        return Fact(NAME, {"what": "statistics", **self._values}) if self._values else None


def parse(line: Line) -> Fact | _Statistics | None:
    """``what`` happened, with its numbers; seconds are named ``*_s``, queues and samples are counts."""
    if line.cut or line.shows_samples:
        return None
    text = line.text.rstrip()
    if text.startswith(_STATISTICS):
        statistics = _Statistics(text)
        return statistics.close() if text.endswith("}") else statistics
    for what, pattern, names in _FORMS:
        if found := pattern.match(text):
            said = {name: number(value) for name, value in zip(names, found.groups(), strict=True) if value}
            return Fact(NAME, {"what": what, **said})
    return None


def _items(text: str) -> dict[str, int | float]:
    return {key.rpartition("/")[2]: number(value) for key, value in _ITEM.findall(text[:_TEXT])}
