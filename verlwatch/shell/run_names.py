"""One entry of the configuration for many runs: ``{folder}``, ``{file}`` and ``{session}`` in its name.

They stand for the folder in which a log lies and for the log's own name without its ending, so that each different
name is a run of its own: ``{folder}/{file}`` of verl's ``$VERL_FILE_LOGGER_ROOT/<project>/<experiment>.jsonl`` is
``<project>/<experiment>``, and with ``{folder}`` the console log and the JSONL in one folder are one run.
``{session}`` is the name of the Ray session in which a log lies.  Ray gives it once for all hosts of a cluster, so that
what agents read on each of them is one run at their hub.
"""

from __future__ import annotations

import re
from functools import lru_cache
from glob import escape
from pathlib import PurePath

from verlwatch.shell.printable import printable

NAME_LIMIT = 100
PARTS = ("folder", "file", "session")

_PART = re.compile(r"(?<!\$)\{(\w*)\}")  # ${NAME} is what it is: variables are not expanded
_KEPT_IN_FRONT = 40  # of a name that is too long; its end is what tells experiments apart


def unknown_part(name: str) -> str | None:
    """The first ``{...}`` in a name that stands for nothing."""
    return next((part for part in _PART.findall(name) if part not in PARTS), None)


def run_of(name: str, path: str) -> str:
    """The run that the log at ``path`` belongs to in an entry called ``name``."""
    if "{" not in name:
        return name
    of = PurePath(path)
    session = next((folder.name for folder in of.parents if folder.name.startswith("session_")), of.parent.name)
    parts = {"folder": of.parent.name, "file": of.stem, "session": session}
    text = printable(_PART.sub(lambda part: parts.get(part[1], part[0]), name))
    if len(text) > NAME_LIMIT:
        text = f"{text[:_KEPT_IN_FRONT]}…{text[_KEPT_IN_FRONT + 1 - NAME_LIMIT :]}"
    return text


def may_be_of(name: str, run: str) -> bool:
    """Whether an entry called ``name`` can have a run called ``run``."""
    return name == run or ("{" in name and (len(run) == NAME_LIMIT or _form(name).fullmatch(run) is not None))


def run_pattern(name: str) -> str:
    """What fits each run that an entry called ``name`` can have (``*``)."""
    return "*".join(map(escape, _PART.split(name)[::2]))


@lru_cache(maxsize=256)
def _form(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(text) for text in _PART.split(name)[::2]))
