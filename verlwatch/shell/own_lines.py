"""The engine behind own lines: RE2, whose time grows with the length of a text and never explodes.

google-re2 is an extra (``verlwatch[own]``).  RE2 knows no look-around and no back references: they are what makes
other engines slow.  Its time for a byte grows with the size of the pattern, so that is bounded, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib import import_module
from itertools import count
from operator import itemgetter
from types import ModuleType
from typing import Any

from verlwatch.core.lines import GROUPS, KINDS, OwnLine, Search, UnreadableError
from verlwatch.shell.printable import shortened

__all__ = ["GROUPS", "TAKEN", "OwnLine", "UnreadableError", "is_installed", "own_line", "search_of"]

TAKEN = frozenset(kind.NAME for kind in KINDS)
"""Names that kinds of line have already."""

_LONGEST_PATTERN = 1000
_LARGEST_PROGRAM = 1500  # instructions of RE2's: each may cost some 5 ns a byte where nothing else helps


_GROUP = re.compile(r"\(\?P?<(\w+)>")


def _engine() -> ModuleType | None:
    try:
        return import_module("re2")
    except ImportError:
        return None


def is_installed() -> bool:
    """Whether there is an engine to run patterns."""
    return _engine() is not None


def own_line(name: str, contains: str, pattern: str, unit: str = "") -> OwnLine:
    """A kind of line as it is described.  Raises ValueError where `search_of` does."""
    return OwnLine(name, (contains.encode(),), search_of(pattern), unit)


@lru_cache
def search_of(pattern: str) -> Search:
    """What looks for ``pattern`` in a text.

    Raises:
        ValueError: the engine is missing, or this is not a pattern it can run with the groups that mean something.
    """
    re2 = _engine()
    if re2 is None:
        raise ValueError("cannot be run without google-re2; install it with pip install 'verlwatch[own]'")
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"is longer than {_LONGEST_PATTERN} characters; match less, or read it as two lines")
    options = re2.Options()
    options.log_errors = False
    try:
        regexp = re2.compile(pattern.encode(), options)  # on bytes: a str costs three times as much
    except re2.error as error:
        raise ValueError(_no_pattern(error)) from None
    if regexp.programsize > _LARGEST_PROGRAM:
        raise ValueError("is too large when written out; repeat less: {1,50} writes a part out fifty times")
    index = {name.decode(): number - 1 for name, number in sorted(regexp.groupindex.items(), key=itemgetter(1))}
    _check_groups(index, _times_named(re2, pattern, options))

    def search(text: str) -> Mapping[str, str] | None:
        match = regexp.search(text.encode(errors="replace"))
        if match is None:
            return None
        held = match.groups()
        return {name: held[number].decode(errors="replace") for name, number in index.items() if held[number]}

    return search


def _no_pattern(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return (
        f"is no pattern of RE2 ({shortened(reason)}); "
        "write it as for Python's re, without look-around and back references"
    )


def _times_named(re2: ModuleType, pattern: str, options: Any) -> Counter[str]:
    """How many groups have each name.  RE2 takes a name twice, but tells of it once.

    So each is given a name of its own: what RE2 then knows is a group, and no text such as ``[(?P<value>]``.
    """
    number = count()
    numbered = _GROUP.sub(lambda group: f"(?P<{group[1]}_{next(number)}>", pattern)
    try:
        names = re2.compile(numbered.encode(), options).groupindex
    except re2.error:  # what looks like a group is none to RE2, and means something else with a longer name
        return Counter()
    return Counter(name.decode().rpartition("_")[0] for name in names)


def _check_groups(names: Collection[str], times: Mapping[str, int]) -> None:
    for name in names:
        if name not in GROUPS:
            raise ValueError(
                f"has the group {shortened(name)}, which stands for nothing; known: {', '.join(GROUPS)}; "
                "write (?:…) around what is not to be read"
            )
        if times.get(name, 0) > 1:
            raise ValueError(f"has the group {name} twice, of which one alone would be read; name it once")
    if "value" not in names:
        raise ValueError("has no group value; put (?P<value>…) around the number, as in (?P<value>[0-9.]+)")
