"""Patterns of paths, as a shell with globstar reads them.

``*``, ``?`` and ``[…]`` match within one name, ``**`` any number of directories; names that begin with a dot only
where the pattern says so.  ``**`` does not descend into directories that are links: a link may lead back to where the
search came from, which would never end, or out of the folder that was asked for.  A link that a name or wildcard of
its own stands for is followed, as in ``/tmp/ray/session_latest/logs/*.log``.

A search is bounded, as a pattern may be wider than its author thinks (``/**/*.log``): it lists so many directories,
those near the top first, and gives so many paths.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from itertools import islice

DIRECTORIES = 10_000
PATHS = 50_000

_Wanted = Callable[[os.DirEntry[str]], bool]


class Search:
    """One search; ``cut_short`` says afterwards that a bound was met, so that paths may be missing."""

    def __init__(self, directories: int = DIRECTORIES, paths: int = PATHS) -> None:
        self.cut_short = False
        self._directories = directories
        self._paths = paths
        self._listed: set[str] = set()

    def paths(self, pattern: str) -> list[str]:
        """What the absolute pattern names, sorted.  A directory that cannot be listed counts as empty."""
        parts = [part for part in pattern.split("/") if part]
        if parts[-1:] == ["**"] and not pattern.endswith("/"):
            parts.append("*")
        places = ["/"]
        for number, part in enumerate(parts, 1):
            if part == "**":
                places = self._below(places)
            elif glob.has_magic(part):
                places = self._matching(places, part, inner=number < len(parts))
            else:
                places = [_join(place, part) for place in places]
        return sorted(places if glob.has_magic(parts[-1]) else filter(os.path.lexists, places))

    def _below(self, places: Iterable[str]) -> list[str]:
        """The directories and all that are below them, level by level."""
        found = list(places)
        known = set(found)
        for folder in found:  # which grows meanwhile
            below = [path for path in self._list(folder, _is_plain_directory) if path not in known]
            self._take(below, found)
            known.update(below)
        return found

    def _matching(self, places: Iterable[str], part: str, *, inner: bool) -> list[str]:
        matches = re.compile(translate(part)).match

        def wanted(entry: os.DirEntry[str]) -> bool:
            shown = part.startswith(".") or not entry.name.startswith(".")
            return shown and matches(entry.name) is not None and (not inner or _is_directory(entry))

        found: list[str] = []
        for folder in places:
            self._take(self._list(folder, wanted), found)
        return found

    def _list(self, folder: str, wanted: _Wanted) -> list[str]:
        """Paths in a directory, sorted."""
        if folder not in self._listed and len(self._listed) >= self._directories:
            self.cut_short = True
            return []
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(filter(wanted, entries), self._paths + 1)]
        except OSError:
            return []
        self._listed.add(folder)
        return [_join(folder, name) for name in sorted(names)]

    def _take(self, paths: list[str], found: list[str]) -> None:
        """Adds paths to those found, as many as there may be."""
        room = self._paths - len(found)
        self.cut_short = self.cut_short or len(paths) > room
        found += paths[:room]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere, or round and round
        return False


def _is_plain_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _join(folder: str, name: str) -> str:
    return f"{folder}{name}" if folder.endswith("/") else f"{folder}/{name}"
