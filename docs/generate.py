"""Writes the parts of README.md that come from the program: the message and the table of rules.

python docs/generate.py            writes them
python docs/generate.py --check    exit code 1 if they are out of date
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from verlwatch.core.engine import Engine
from verlwatch.core.rules import RULES
from verlwatch.core.types import Chunk, Message, Settings
from verlwatch.shell.notifiers import message_text

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SHIFT_STEP = 200
RECORDED = ROOT / "verlwatch" / "demo" / "train.log.gz"


def message() -> str:
    """The first message about the lasting shift of the recorded run, as plain text."""
    for told in _messages():
        if told.onset_step == SHIFT_STEP and told.reason == "opened":
            return f"```text\n{message_text(told)}\n```"
    raise AssertionError("the recorded run tells no shift at step 200")


def _messages() -> Iterator[Message]:
    engine = Engine(Settings(receivers=("team",)))
    outcome = engine.feed(Chunk("qwen-grpo.log", 1, 0, gzip.decompress(RECORDED.read_bytes())), now=1_743_500_000.0)
    yield from (notification.message for notification in outcome.notifications)


def rules() -> str:
    """One row for each rule, from its docstring and NEEDS."""
    rows = [f"| `{rule.NAME}` | {(rule.__doc__ or '').strip().splitlines()[0]} | {rule.NEEDS} |" for rule in RULES]
    return "\n".join(["| rule | what it says | needs |", "|---|---|---|", *rows])


def generated(text: str) -> str:
    """``text`` with both parts as they must be now."""
    for name, body in (("message", message()), ("rules", rules())):
        text = re.sub(
            rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", rf"\g<1>{_literal(body)}\n\g<2>", text, flags=re.DOTALL
        )
    return text


def _literal(body: str) -> str:
    return body.replace("\\", "\\\\")


def main() -> int:
    """Writes or checks."""
    text = README.read_text()
    wanted = generated(text)
    if "--check" in sys.argv:
        return int(text != wanted)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
