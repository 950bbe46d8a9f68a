"""Writes what in the documents comes from the program: README's message, its picture and rules, LINES.md, RULES.md.

python docs/generate.py            writes them
python docs/generate.py --check    exit code 1 if they are out of date
"""

from __future__ import annotations

import gzip
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from slack_svg import svg

from verlwatch.core.engine import Engine
from verlwatch.core.lines import KINDS
from verlwatch.core.rules import LIFE_RULES, MEMORY_RULES, RULES, LifeRule, MemoryRule, Rule
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Message
from verlwatch.shell.notifiers import message_text
from verlwatch.shell.notifiers.slack_bot import SlackBotNotifier

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RULES_PAGE = ROOT / "docs" / "RULES.md"
LINES = ROOT / "docs" / "LINES.md"
PICTURE = ROOT / "docs" / "slack-message.svg"
SHIFT_STEP = 200
RECORDED = ROOT / "verlwatch" / "demo" / "train.log.gz"


def message() -> str:
    """The first message about the lasting shift of the recorded run, as plain text."""
    return f"```text\n{message_text(_shift())}\n```"


def picture() -> str:
    """The same as Slack shows it."""
    told = _shift()
    return svg(SlackBotNotifier.render(told, f"{told.incident}-1")["message"], "verlwatch")


def _shift() -> Message:
    for told in _messages():
        if told.onset_step == SHIFT_STEP and told.reason == "opened":
            return told
    raise AssertionError("the recorded run tells no shift at step 200")


def _messages() -> Iterator[Message]:
    engine = Engine(Settings(receivers=("team",)))
    outcome = engine.feed(Chunk("qwen-grpo.log", 1, 0, gzip.decompress(RECORDED.read_bytes())), now=1_743_500_000.0)
    yield from (notification.message for notification in outcome.notifications)


def rules() -> str:
    """One row for each rule, from its docstring."""
    listed = (*RULES, *LIFE_RULES, *MEMORY_RULES)
    rows = [f"| `{rule.NAME}` | {_cell((rule.__doc__ or '').strip().splitlines()[0])} |" for rule in listed]
    return "\n".join(["| rule | what it says |", "|---|---|", *rows])


def reference() -> str:
    """A section for each group of rules, an entry for each rule: its docstring, what it needs, how to turn that on."""
    groups = (
        ("Asked with each step", RULES),
        ("The life of a run: asked with each line and as time passes", LIFE_RULES),
        ("GPUs: asked with each sample", MEMORY_RULES),
    )
    return "\n\n".join(f"## {title}\n\n" + "\n\n".join(map(_entry, rules)) for title, rules in groups)


def _entry(rule: Rule | LifeRule | MemoryRule) -> str:
    text = inspect.cleandoc(rule.__doc__ or "").replace("``", "`")
    turn_on = f"\n\n**Turn on:** {rule.TURN_ON}." if rule.TURN_ON else ""
    return f"### {rule.NAME}\n\n{text}\n\n**Needs:** {rule.NEEDS}.{turn_on}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def lines() -> str:
    """One row for each kind of line, from its docstring."""
    rows = []
    for kind in KINDS:
        text = (kind.__doc__ or "").strip()
        source = re.search(r"^Source: (.*?)(?:\n\n|\.  |\.$|\Z)", text, flags=re.DOTALL | re.MULTILINE)
        rows.append(f"| `{kind.NAME}` | {_cell(text.splitlines()[0])} | {_cell(source[1]) if source else ''} |")
    return "\n".join(["| kind | what is read | who prints it |", "|---|---|---|", *rows])


PARTS = {RULES_PAGE: {"rules": reference}, README: {"message": message, "rules": rules}, LINES: {"lines": lines}}


def generated(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """``text`` with its parts as they must be now."""
    for name, body in ((name, make()) for name, make in parts.items()):
        text = re.sub(
            rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", rf"\g<1>{_literal(body)}\n\g<2>", text, flags=re.DOTALL
        )
    return text


def _literal(body: str) -> str:
    return body.replace("\\", "\\\\")


def main() -> int:
    """Writes or checks."""
    stale = 0
    wanted_by_path = {path: generated(path.read_text(), parts) for path, parts in PARTS.items()} | {PICTURE: picture()}
    for path, wanted in wanted_by_path.items():
        text = path.read_text() if path.exists() else ""
        stale += text != wanted
        if "--check" not in sys.argv:
            path.write_text(wanted)
    return int("--check" in sys.argv and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main())
