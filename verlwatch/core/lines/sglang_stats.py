"""SGLang's scheduler: a batch of decoding or prefilling, and requests taken back because the cache is full.

    [2025-01-23 19:35:34 TP0] Decode batch. #running-req: 1, #token: 60, token usage: 0.00,
        gen throughput (token/s): 5.91, #queue-req: 0                                            one line
    Prefill batch, #new-seq: 4, #new-token: 512, #cached-token: 64, token usage: 0.12, #running-req: 8, #queue-req: 0,
    KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 646, #new_token_ratio: 0.1 -> 0.3

Source: SGLang ``srt/managers/scheduler.py``, later ``scheduler_metrics_mixin.py`` (0.4.1 to 0.5.5): a dot or a comma
behind ``batch``, ``[123]`` before it with SGLANG_LOG_FORWARD_ITERS, a comma at the end since 0.5.5; ``Decode out of
memory happened.`` before 0.5.  Usage is a fraction of the pool.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Attributes, Fact, Line, known
from verlwatch.core.lines._quantity import number

NAME: Final = "sglang_stats"
NEEDLES: Final = (b"#queue-req: ", b"#retracted_reqs: ")

_BATCH = re.compile(r"(Decode|Prefill) batch(?: \[[0-9]{1,18}\])?[.,] (?=#)")
_RETRACT = re.compile(r"(?:KV cache pool is full\. Retract requests\.|Decode out of memory happened\.) (?=#)")
_ITEM = re.compile(r"([#a-z][a-z_ ()/-]{2,40}): (?:[0-9.]{1,18} -> )?([0-9]{1,18}(?:\.[0-9]{1,6})?)%?")
_ITEMS_MAX = 30
_NAMES = {
    "#running-req": "running",
    "#queue-req": "waiting",
    "#token": "tokens",
    "token usage": "token_usage",
    "#full token": "tokens",
    "full token usage": "token_usage",
    "swa token usage": "swa_token_usage",
    "mamba usage": "mamba_usage",
    "gen throughput (token/s)": "generation_tokens_per_s",
    "input throughput (token/s)": "prompt_tokens_per_s",
    "accept len": "accept_length",
    "#new-seq": "new_sequences",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "cache hit rate": "cache_hit_percent",
    "#retracted-req": "retracted",
    "#retracted_reqs": "retracted",
    "#new_tokens_gained": "tokens_gained",
    "#new_token_ratio": "new_token_ratio",
}


def parse(line: Line) -> Fact | None:
    """``what`` (decode, prefill, retract), ``process`` (``TP0``), and the counts of the line."""
    if line.shows_samples:
        return None
    text, _, _, process = bare(line)
    start = _BATCH.match(text) or _RETRACT.match(text)
    if start is None:
        return None
    *items, last = text[start.end() :].split(", ", _ITEMS_MAX)
    if not line.cut:
        items.append(last.rstrip(", "))
    values: Attributes = {}
    for item in items:
        found = _ITEM.fullmatch(item)
        if found and found[1] in _NAMES:
            values[_NAMES[found[1]]] = number(found[2])
    if not values:
        return None
    what = start[1].lower() if start.re is _BATCH else "retract"
    return Fact(NAME, known({"what": what, "process": process}) | values)
