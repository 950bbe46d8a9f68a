"""Logs made up for reports, and what is read of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

from verlwatch import report
from verlwatch.report import Reading, Report

WORDS = report.Words("en")


def steps(
    count: int, *, first: int = 1, slow: Mapping[int, float] | None = None, also: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Step lines of 10,000 tokens, gen about 20 s times ``slow``, the step 30 s more; ``also`` stands in each line."""
    noise = random.Random(5)
    extra = "".join(f" - {key}:{value}" for key, value in (also or {}).items())
    for step in range(first, first + count):
        gen = 20.0 * (slow or {}).get(step, 1.0) * (1 + 0.01 * noise.gauss(0, 1))
        yield (
            f"step:{step} - perf/total_num_tokens:10000 - timing_s/gen:{gen!r} - timing_s/update_actor:29.5"
            f" - timing_s/step:{gen + 30!r}{extra}"
        )


def config(**keys: object) -> list[str]:
    """The rows of a resolved configuration; ``__`` in a name stands for a dot."""
    tree: dict[str, Any] = {
        "actor_rollout_ref": {"actor": {"strategy": "fsdp"}, "rollout": {"name": "vllm"}},
        "trainer": {},
    }
    for dotted, value in keys.items():
        node = tree
        *above, name = dotted.split("__")
        for part in above:
            node = node.setdefault(part, {})
        node[name] = value
    return pformat(tree, width=40).splitlines()


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def read(*logs: Path) -> Reading:
    return report.read(logs, "r")


def reported(tmp_path: Path, *lines: str) -> Report:
    return report.build(read(written(tmp_path / "r.log", *lines)), WORDS)


def names(found: Report) -> set[str]:
    """Of its findings and mismatches."""
    return {f.name for f in found.findings} | {m.name for m in found.mismatches}
