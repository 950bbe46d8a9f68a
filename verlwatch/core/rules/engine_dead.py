"""An inference engine that died: vLLM's core or SGLang's scheduler."""

from __future__ import annotations

from verlwatch.core.rules._life import death, of
from verlwatch.core.rules._life_view import LifeView
from verlwatch.core.types import Diagnosis

NAME = "engine_dead"
NEEDS = "vLLM's or SGLang's words about it"
TURN_ON = ""
NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
ADVICE = (
    "The engine's own traceback above the first of these lines says why; what follows it is its callers.",
    "Often it is memory (rollout.gpu_memory_utilization) or a request that the engine cannot take (lengths, a tool).",
)


def diagnose(view: LifeView) -> tuple[Diagnosis, ...]:
    """One diagnosis where an engine is dead."""
    faults = of(view, "engine_dead")
    if not faults:
        return ()
    backend = str(faults[0].said.get("backend", ""))
    cause = next((str(f.said["exception"]) for f in faults if "exception" in f.said), "")
    title = f"the {NAMES.get(backend, 'inference')} engine died" + (f" of {cause}" if cause else "")
    return (death(NAME, view, title, faults=faults, advice=ADVICE),)
