"""Patterns of a configuration become paths."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verlwatch.shell._glob import Search
from verlwatch.shell.identity import rotated_from


@dataclass(slots=True)
class Found:
    """What the patterns name now.

    ``runs`` maps each path to its run, ``folders`` are the directories in which something may appear, ``unmatched``
    the patterns that name nothing, each with its run and, where it cannot even be looked for, the reason;
    ``left_out`` counts the files beyond the limit, ``cut_short`` are patterns whose search met its bound.
    """

    runs: dict[str, str] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    unmatched: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    left_out: int = 0
    cut_short: list[str] = field(default_factory=list)


def discover(patterns: Mapping[str, tuple[str, ...]], known: Collection[str], limit: int) -> Found:
    """Expands every pattern (``*``, ``?``, ``[…]``, ``**``); a path without these counts whether it exists or not.

    A file that a pattern finds is left out if it is a directory, or the rotated file of another source
    (``train.log.1`` beside ``train.log``): those are read as what their source held before.  Files that are followed
    already (``known``) come first where the limit cuts.
    """
    found = Found()
    matched: dict[str, str] = {}
    for run, paths in patterns.items():
        for path in paths:
            if not glob.has_magic(path) or os.path.lexists(path):
                found.runs.setdefault(path, run)
                continue
            search = Search()
            matches = search.paths(path)
            if search.cut_short:
                found.cut_short.append(path)
            found.folders[_fixed_part(path)] = None
            if not matches:
                found.unmatched[path] = (run, _why_not_listed(_fixed_part(path)))
            for match in matches:
                matched.setdefault(match, run)
    originals = {*found.runs, *matched, *known}
    for path in sorted(matched, key=lambda path: path not in known):
        followed = path in known
        if path in found.runs or (not followed and (rotated_from(path) in originals or _is_folder(path))):
            continue
        if len(found.runs) >= limit:
            found.left_out += 1
        else:
            found.runs[path] = matched[path]
    found.folders.update(dict.fromkeys(path.rpartition("/")[0] or "/" for path in found.runs))
    return found


def _is_folder(path: str) -> bool:
    """Whether it is a directory; what may not even be looked at is left for the source to report."""
    return os.path.isdir(path)  # noqa: PTH112  # pathlib's raises where the look itself is refused


def _fixed_part(pattern: str) -> str:
    """The directory above the first wildcard."""
    while glob.has_magic(pattern):
        pattern = str(Path(pattern).parent)
    return pattern


def _why_not_listed(folder: str) -> str | None:
    try:
        with os.scandir(folder):
            return None
    except OSError as error:
        return f"{folder} cannot be listed: {error.strerror}"
