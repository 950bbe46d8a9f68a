"""Which workers print what models and sandboxes say.

A worker of the engine or of training prints lines of vLLM, SGLang and torch as they are; one that scores samples or
runs tools also prints text that may look like any of them.
"""

from __future__ import annotations

from verlwatch.core.lines._line import Line


def prints_samples(line: Line) -> bool:
    """Whether the line's writer scores samples or runs the tools that they call."""
    name = line.writer.name
    return "Reward" in name or "AgentLoop" in name or name.startswith("ExecutionWorker")
