"""vLLM's own counters, every ten seconds, where ``rollout.disable_log_stats`` is False.

    Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 12.5 tokens/s, Running: 1 reqs, Swapped: 0 reqs,
        Pending: 0 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%.                     V0, one line
    Engine 000: Avg prompt throughput: 7107.0 tokens/s, Avg generation throughput: 520.0 tokens/s, Running: 9 reqs,
        Waiting: 6 reqs[, Preemptions: 2], GPU KV cache usage: 13.3%, Prefix cache hit rate: 5.2%[, ...]    V1

Source: vLLM ``engine/metrics.py`` (V0) and ``v1/metrics/loggers.py`` (V1), which puts ``4 Engines Aggregated: `` in
place of ``Engine 000: `` for all together; its first releases print neither, nor the caches.  A value with its unit
behind it is whole wherever the line was cut.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Attributes, Fact, Line
from verlwatch.core.lines._quantity import number

NAME: Final = "vllm_stats"
NEEDLES: Final = (b"throughput: ",)

_START = re.compile(r"(?:Engine ([0-9]{1,6}): |([0-9]{1,6}) Engines Aggregated: )?(?=Avg prompt throughput: )")
_ITEM = re.compile(r"([A-Za-z ]{3,40}): ([0-9]{1,18}(?:\.[0-9]{1,6})?)( tokens/s| reqs|%|$)\.?")
_ITEMS_MAX = 20
_NAMES = {
    "Avg prompt throughput": "prompt_tokens_per_s",
    "Avg generation throughput": "generation_tokens_per_s",
    "Running": "running",
    "Waiting": "waiting",
    "Pending": "waiting",
    "Swapped": "swapped",
    "Preemptions": "preemptions",
    "Corrupted": "corrupted",
    "GPU KV cache usage": "kv_cache_percent",
    "CPU KV cache usage": "cpu_kv_cache_percent",
    "Prefix cache hit rate": "prefix_cache_hit_percent",
    "External prefix cache hit rate": "external_prefix_cache_hit_percent",
    "MM cache hit rate": "mm_cache_hit_percent",
}


def parse(line: Line) -> Fact | None:
    """Tokens a second, requests by state, and percentages, of ``engine`` or of all ``engines`` together."""
    if line.shows_samples:
        return None
    text = bare(line).text
    start = _START.match(text)
    if start is None:
        return None
    values: Attributes = {}
    items = text[start.end() :].split(", ", _ITEMS_MAX)
    for item in items:
        found = _ITEM.fullmatch(item.rstrip())
        if found and found[1] in _NAMES and (found[3] or item is not items[-1]):
            values[_NAMES[found[1]]] = number(found[2])
    if "generation_tokens_per_s" not in values:
        return None
    whose = {"engine": start[1], "engines": start[2]}
    return Fact(NAME, {**{name: int(text) for name, text in whose.items() if text}, **values})
