"""What a run is doing, as far as its log tells: verl names a phase when it is over, some lines tell of its begin.

Source: progress and phase bars, ``test_gen_batch meta info`` and ``local_global_step_folder`` of the trainer, the heads
of memory lines at ``VERL_LOGGING_LEVEL=DEBUG``, slime's timers, and the engines' own counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verlwatch.core.rules import Attributes, Stage
from verlwatch.core.types import Event

STARTS = frozenset({"host", "plan", "resume"})
"""What a trainer prints when it begins."""
MILESTONES = STARTS | {
    "config",
    "overrides",
    "gpu_memory",
    "engine_memory",
    "actor",
    "validated",
    "validation",
    "progress",
}
"""What tells of progress before the first step."""
_BARS = {
    "compute_log_probs": "old_log_prob",
    "compute_values": "values",
    "update_policy": "update_actor",
    "train_mini_batches": "update_actor",
    "actor_train": "update_actor",
    "rollout": "gen",
    "generate": "gen",
}

ENGINES = 1024
"""So many are counted."""
COUNTED_S = 60.0
"""Engines that worked and have not counted for so long say nothing of now; idle ones print nothing any more."""


class Stages:
    """The stage of one run, from the events of its logs."""

    def __init__(self) -> None:
        self.now = Stage("start", 0.0, "starting")
        self._running: dict[str, int] = {}
        """Engine -> requests that it works on."""
        self._counted_at = 0.0

    def begin(self, now: float) -> None:
        """A trainer starts."""
        self.now = Stage("start", now, "starting")
        self._running.clear()

    def stepped(self, step: int, now: float) -> None:
        """A step is over."""
        self.now = Stage("step", now, f"the step after step {step}")

    def hear(self, event: Event, step: int, now: float) -> None:
        """Takes what an event tells of where the run is; ``step`` is the last one."""
        said = event.attributes
        match event.name:
            case "resume" if said.get("from") == "checkpoint":
                self.now = Stage("loading", now, "loading a checkpoint")
            case "progress" if step < 0 and self.now.name in {"start", "loading"}:
                self.now = Stage(
                    "first step", now, f"the first step (progress bar at {said['done']} of {said['total']})"
                )
            case "validated":
                self.now = Stage("first step", now, "the first step, after the initial validation")
            case "validation":
                what = "begun" if said.get("what") == "begin" else "its responses are generated, their scores come next"
                since = self.now.since_at if self.now.name == "validation" else now
                self.now = Stage("validation", since, f"validation, {what}")
            case "checkpoint":
                self.now = Stage("checkpoint", now, f"saving a checkpoint to {said['folder']}")
            case "phase_bar":
                self._phase(said, now, f"({said['done']} of {said['total']})", is_over=said["done"] == said["total"])
            case "phase_timer":
                is_over = said.get("what") != "start"
                self._phase(said, now, "has ended" if is_over else "has begun", is_over=is_over)
            case "reward_timeout":
                self.now = Stage("reward", now, "reward: calls have run into their time limit")
            case "gpu_memory":
                self._memory(said, step, now)
            case "vllm_stats" | "sglang_stats" if "running" in said:
                self._engine(f"{event.origin.writer.pid} {said.get('engine', '')}", int(said["running"]), now)

    def _phase(self, said: Attributes, now: float, words: str, *, is_over: bool) -> None:
        phase = _BARS.get(str(said["phase"]), str(said["phase"]))
        self.now = Stage("step" if is_over else phase, now, f"{phase} {words}")

    def _memory(self, said: Attributes, step: int, now: float) -> None:
        """The head of a memory line tells of a phase that begins or ends; before the first step of what is built."""
        if "phase" in said and "when" in said:
            phase = str(said["phase"])
            begins = said["when"] == "before"
            self.now = Stage(phase if begins else "step", now, f"{phase} has {'begun' if begins else 'ended'}")
        elif step < 0 and self.now.name in {"start", "loading"}:
            self.now = Stage(self.now.name, now, f"starting: {said['head']}")

    def _engine(self, engine: str, running: int, now: float) -> None:
        if engine not in self._running and len(self._running) >= ENGINES:
            del self._running[next(iter(self._running))]
        self._running[engine] = running
        self._counted_at = now

    def told(self, now: float) -> Stage:
        """The stage, with what the engines' counters add where no line names a phase."""
        stage = self.now
        if stage.name not in {"step", "first step", "validation"} or self._counted_at < stage.since_at:
            return stage
        running = sum(self._running.values())
        if running and now - self._counted_at >= COUNTED_S:
            return stage
        if running:
            name = stage.name if stage.name == "validation" else "gen"
            requests = "1 request" if running == 1 else f"{running} requests"
            return Stage(name, stage.since_at, f"{stage.words}: the engines work on {requests}")
        return stage._replace(words=f"{stage.words}: the engines are idle, so it is behind generation")

    def state(self) -> dict[str, Any]:
        """JSON-safe; the inverse of `restore`."""
        return {"now": list(self.now), "running": self._running, "counted_at": self._counted_at}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes up where it was."""
        self.now = Stage(*data["now"])
        self._running, self._counted_at = dict(data["running"]), data["counted_at"]
