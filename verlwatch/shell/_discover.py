"""Patterns of a configuration become paths."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verlwatch.shell._glob import Search
from verlwatch.shell._ray import Session, Sessions, changed_at, is_session_file
from verlwatch.shell.identity import rotated_from
from verlwatch.shell.run_names import run_of

SILENT_S = 3 * 86_400.0
HYDRA = ".hydra"


@dataclass(slots=True)
class Found:
    """What the patterns name now.

    ``runs`` maps each path to its run and ``entries`` to the name that the run's entry has in the configuration.
    ``ended`` are paths that belonged to a run whose Ray session has a newer training now.  ``folders`` are the
    directories in which something may appear, ``unmatched`` the patterns that name nothing, each with its entry and,
    where it cannot even be looked for, the reason; ``left_out`` counts the files beyond the limit, ``cut_short`` are
    patterns whose search met its bound.  ``beside`` are files that no pattern names: Hydra's configuration of a run.
    """

    runs: dict[str, str] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    folders: dict[str, None] = field(default_factory=dict)
    unmatched: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    left_out: int = 0
    cut_short: list[str] = field(default_factory=list)
    beside: set[str] = field(default_factory=set)

    def add(self, path: str, entry: str) -> None:
        """A path belongs to the entry that names it first."""
        if path not in self.runs:
            self.runs[path] = run_of(entry, path)
            self.entries[path] = entry


def discover(
    patterns: Mapping[str, tuple[str, ...]],
    known: Collection[str],
    limit: int,
    *,
    sessions: Sessions | None = None,
    unfinished: Iterable[str] = (),
    hydra: bool = True,
) -> Found:
    """Expands every pattern (``*``, ``?``, ``[…]``, ``**``); a path without these counts whether it exists or not.

    A file that a pattern finds is left out if it is a directory, or the rotated file of another source
    (``train.log.1`` beside ``train.log``): those are read as what their source held before.  A path that is a Ray
    session stands for the logs of its newest training, and for those of earlier ones that are ``unfinished``: an
    earlier process may not have read them to their end.  Files that are followed already (``known``) come first where
    the limit cuts.  With ``hydra`` the configuration that lies beside the logs of one run belongs to it.
    """
    found = Found()
    matched: dict[str, str] = {}
    sessions = sessions or Sessions()
    moving: list[tuple[str, str]] = []  # entries that go on to the next training: entry and folder of logs
    for entry, paths in patterns.items():
        for path in paths:
            if glob.has_magic(path) and not os.path.lexists(path):
                matches = _matches(path, entry, found)
                if entry != run_of(entry, path):  # each may be a run of its own: those written last come first
                    matches.sort(key=lambda path: 0.0 if path in known else -changed_at(path))
            elif session := sessions.find(path):
                matches = _of_session(path, session, entry, found, sessions)
                if not session.job:
                    moving.append((entry, session.logs))
            else:
                found.add(path, entry)
                continue
            for match in matches:
                matched.setdefault(match, entry)
    for entry, logs in moving:
        before = {path for path in known if path not in matched and is_session_file(path, logs)}
        left = before.intersection(unfinished)
        found.ended |= before - left if entry in matched.values() else set()
        matched |= dict.fromkeys(sorted(filter(os.path.lexists, left)), entry)
    _take(matched, found, known, limit)
    found.folders.update(dict.fromkeys(path.rpartition("/")[0] or "/" for path in found.runs))
    if hydra:
        _look_beside(found, limit)
    return found


def _matches(pattern: str, entry: str, found: Found) -> list[str]:
    """What the pattern names."""
    search = Search()
    matches = search.paths(pattern)
    if search.cut_short:
        found.cut_short.append(pattern)
    found.folders[_fixed_part(pattern)] = None
    if not matches:
        found.unmatched[pattern] = (entry, _why_not_listed(_fixed_part(pattern)))
    return matches


def _of_session(path: str, session: Session, entry: str, found: Found, sessions: Sessions) -> list[str]:
    """The files of the training that ``path`` names."""
    files = sessions.files(session)
    if not files:
        found.unmatched[path] = (entry, None)
    for folder in (path.rpartition("/")[0] or "/", session.logs):  # where the link is turned, and where workers begin
        found.folders[folder] = None
    return files


def _take(matched: Mapping[str, str], found: Found, known: Collection[str], limit: int) -> None:
    """Adds the files that were found, those already followed first, up to the limit.

    Where there are too many, those come last that have been silent for days: what is written to now is a training.
    """
    originals = {*found.runs, *matched, *known}
    changed = {path: changed_at(path) for path in matched} if len(found.runs) + len(matched) > limit else {}
    old = max(changed.values(), default=0.0) - SILENT_S
    for match in sorted(matched, key=lambda path: (changed.get(path, old) < old, path not in known)):
        path = match
        if match not in known and (original := rotated_from(match)) in originals:
            if original not in known:
                continue
            path = original  # which may be gone, and is read on under the name it has now
        if path in found.runs or (path not in known and _is_folder(path)):
            continue
        if len(found.runs) >= limit:
            found.left_out += 1
        else:
            found.add(path, matched[match])


def _look_beside(found: Found, limit: int) -> None:
    """Adds the ``.hydra/config.yaml`` of folders in which the logs of one run lie; it is a log only with others."""
    logs: dict[str, set[tuple[str, str]]] = {}
    for path, run in found.runs.items():
        if os.path.lexists(path):
            logs.setdefault(path.rpartition("/")[0], set()).add((run, found.entries[path]))
    for folder, runs in logs.items():
        if len(runs) > 1 or not _is_folder(f"{folder}/{HYDRA}"):
            continue
        found.folders[f"{folder}/{HYDRA}"] = None
        path = f"{folder}/{HYDRA}/config.yaml"
        if os.path.lexists(path) and path not in found.runs and len(found.runs) < limit:
            ((found.runs[path], found.entries[path]),) = runs
            found.beside.add(path)


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
