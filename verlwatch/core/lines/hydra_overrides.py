r"""Overrides on the command line, as ``set -x`` shows it: ``+ python3 -m verl.trainer.main_ppo trainer.nnodes=2 ...``.

Source: the launch scripts in verl's ``examples``, which begin with ``set -x``; bash writes each word as it could be
typed again: ``'data.train_files=['\''/data/train.parquet'\'']'``.  What it can only write as ``$'a\tb'`` is left out.
Hydra takes ``KEY=VALUE``, ``+KEY=VALUE`` and ``++KEY=VALUE`` as the value of a dotted key.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from verlwatch.core.lines import _config
from verlwatch.core.lines._line import Fact, Line

NAME: Final = "hydra_overrides"
NEEDLES: Final = (b" -m verl.trainer.", b"actor_rollout_ref")

_COMMAND = re.compile(r"\++ (?=\S)")
_PROGRAM = re.compile(r"(?:\S{0,300}/)?(?:python[0-9.]{0,8}|torchrun|accelerate|ray|uv|nohup|env|srun)")
_WORD = re.compile(r"(?:\$'(?:[^'\\]|\\.)*+'|[^\s'\\]|\\.|'[^']*+')++")
_QUOTED = re.compile(r"\\(.)|'([^']*+)'")
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_]\w{0,100}(?:\.[\w@/-]{1,100}){1,20})=(.*)", re.DOTALL)
_MODULE = re.compile(r"[A-Za-z_][\w.]{0,100}")


def parse(line: Line) -> Fact | None:
    """An event ``overrides`` with the text that each dotted key is given as an attribute."""
    if line.from_rollout or line.writer.pid or not line.text.startswith("+"):
        return None
    command = _COMMAND.match(line.text)
    words = _WORD.findall(line.text, command.end()) if command else []
    if not words or not _PROGRAM.fullmatch(words[0]):
        return None
    if line.cut:
        words.pop()
    found = _config.attributes(_override(word) for word in words if "=" in word and "$'" not in word)
    return Fact("overrides", found, excerpt=_command(words)) if found else None


def _command(words: list[str]) -> str:
    """The program and the module that it runs: what stands between them may be secret."""
    program = words[0].rpartition("/")[2]
    module = next((word for flag, word in pairwise(words) if flag == "-m" and _MODULE.fullmatch(word)), None)
    return f"+ {program} -m {module}" if module else f"+ {program}"


def _override(word: str) -> tuple[str, str | None]:
    """Key and value; None for a word that is no override."""
    plain = _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", word) if "'" in word or "\\" in word else word
    override = _OVERRIDE.fullmatch(plain)
    return (override[1], override[2]) if override else ("", None)
