"""Messages that every notifier must be able to render."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from verlwatch.shell.notifiers import sample_message

if TYPE_CHECKING:
    from verlwatch.core.types import Message


def everywhere(text: str) -> Message:
    """A message that has this text wherever it has one."""
    return replace(
        OPENED,
        incident=text,
        run=text,
        rule=text,
        phase=text,
        title=text,
        summary=text,
        sparkline=text,
        link=text,
    )


_SAMPLE = sample_message()
OPENED = replace(
    _SAMPLE,
    incident="7e57c0de",
    run="qwen2-7b-grpo",
    title="qwen2-7b-grpo: gen took ×3.94 at step 120: 394 s instead of 100 s",
    summary="Generation took ×3.94 the time its tokens explain; with it step ×2.20.",
    advice=tuple(line.replace(_SAMPLE.incident, "7e57c0de") for line in _SAMPLE.advice),
    link="http://127.0.0.1:9878/",
)
ESCALATED = replace(
    OPENED,
    reason="escalated",
    rule="phase_shift",
    severity="critical",
    title="qwen2-7b-grpo: gen is ×1.61 since step 200: 161 s instead of 100 s",
    facts=(("Since step", "200"), ("Lost so far", "52 min")),
    link="ssh -L 9878:127.0.0.1:9878 node-17  # then open http://127.0.0.1:9878/",
)
RESOLVED = replace(
    OPENED,
    reason="resolved",
    closed_as="resolved",
    title="qwen2-7b-grpo: gen is back to normal at step 124 (was ×3.94, baseline 100 s)",
    summary="Generation took ×3.94 the time its tokens explain. Closed as resolved after 4 steps; it cost 20 min.",
    advice=(),
)
RUN_ENDED = replace(
    OPENED,
    reason="run ended",
    closed_as="run ended",
    title="qwen2-7b-grpo: run ended at step 300 with gen still ×1.61 since step 200",
    advice=(),
    evidence=(),
    sparkline="",
)
DIED = replace(
    OPENED,
    incident="0ddba115",
    rule="device_oom",
    phase="run",
    severity="critical",
    title="qwen2-7b-grpo: GPU out of memory on rank 3 in update_actor, at step 120 of 400",
    summary="",
    ratio=1.0,
    before=0.0,
    after=0.0,
    facts=(("Wanted", "2 GiB"), ("Last step", "step 120 of 400"), ("Lived", "3.4 h")),
    evidence=("torch.OutOfMemoryError: CUDA out of memory.", "at actor.py:12 in update_policy"),
    advice=("Lower the micro batch size of the phase that it was in.",),
    sparkline="",
    recent=(),
    scope=(("rank", "3"),),
)
"""In the words of its rule: nothing is compared."""
STARTED_AGAIN = replace(
    DIED,
    reason="resolved",
    closed_as="resolved",
    title="qwen2-7b-grpo: runs again: a new start after step 120",
    summary="It was: GPU out of memory on rank 3 in update_actor, at step 120 of 400; over 12 min after it was found.",
    evidence=(),
    advice=(),
)
FINISHED = replace(
    DIED,
    incident="f1415bed",
    reason="finished",
    closed_as="run ended",
    rule="finished",
    severity="info",
    title="qwen2-7b-grpo: finished: step 400 of 400",
    summary="the run is done, step 400 of 400.",
    step=400,
    onset_step=400,
    facts=(("Steps", "400"), ("Duration", "11.2 h"), ("GPU-hours", "90"), ("Time by phase", "gen 61%, other 39%")),
    evidence=(),
    advice=(),
    scope=(),
)
HOSTILE_TEXT = (
    "<!channel> <@U123> @here <https://evil.example|status page> & &lt; \x1b[31mred\x1b[0m \x1b]0;title\x07"
    "\u202e\u200bdrawkcab\u2066 ```` *bold* ~gone~ \r\nstep:1 - loss:0\x00\x07 \udcff"
)
HOSTILE = replace(
    everywhere(HOSTILE_TEXT),
    facts=((HOSTILE_TEXT, HOSTILE_TEXT),),
    evidence=(HOSTILE_TEXT, HOSTILE_TEXT),
    advice=(HOSTILE_TEXT,),
    ratio=math.nan,
    before=math.inf,
    after=-math.inf,
)
HUGE = replace(
    everywhere("&<>😀" * 5000),
    facts=tuple(("&<>😀" * 500, "&<>😀" * 5000) for _ in range(40)),
    evidence=tuple("&<>😀" * 500 for _ in range(200)),
    advice=tuple("&<>😀" * 500 for _ in range(200)),
)
EMPTY = replace(OPENED, summary="", facts=(), evidence=(), advice=(), sparkline="", link="")

MESSAGES: dict[str, Message] = {
    "opened": OPENED,
    "escalated": ESCALATED,
    "resolved": RESOLVED,
    "run_ended": RUN_ENDED,
    "died": DIED,
    "started_again": STARTED_AGAIN,
    "finished": FINISHED,
    "hostile": HOSTILE,
}
