"""The files beside a path: rotated ones, copies, and the one that now holds what was read before."""

from __future__ import annotations

from verlwatch.shell._generation import Generation, Identity, Known, regular
from verlwatch.shell.identity import Fingerprint, Position, siblings


class Beside:
    """Looks for files of the source ``name`` beside its ``path``; what it opens is held by that source."""

    def __init__(self, path: str, name: str, known: Known) -> None:
        self._path = path
        self._name = name
        self._known = known

    def find(self, position: Position, base: Generation | None, now: float) -> Generation | None:
        """The file that holds the position: the one with its inode if there is one, else the path's, else a copy."""
        at_path = base if base is not None and position.matches(base.fd) else None
        if at_path is not None and at_path.identity[1] == position.inode:
            return at_path
        copy: Generation | None = None
        for path in [*reversed(siblings(self._path, position.inode)), position.path]:
            other = self._known.open_beside(path, self._name, now)
            if other is None:
                continue
            if other.identity[1] == position.inode and position.matches(other.fd):
                self._let_go(copy)
                return other
            if (
                copy is None
                and at_path is None
                and position.matches(other.fd)
                and not was_read(other, position.finished)
            ):
                copy = other
            else:
                self._let_go(other)
        return at_path or copy

    def written_since(self, since: Position, current: Generation | None) -> list[tuple[str, Identity]]:
        """Rotated files that are newer than ``since``, by name if its own is among them, or by time; oldest first."""
        if since.changed_ns is None:
            return []
        beside = [(path, status) for path in siblings(self._path, since.inode) if (status := regular(path)) is not None]
        identities = [(status.st_dev, status.st_ino) for _, status in beside]
        here = current.identity if current is not None else (since.device, since.inode)
        rank = identities.index(here) if here in identities else len(beside)
        return [
            (path, identity)
            for index, ((path, status), identity) in enumerate(zip(beside, identities, strict=True))
            if index > rank or status.st_mtime_ns >= since.changed_ns
        ]

    def _let_go(self, generation: Generation | None) -> None:
        if generation is not None:
            self._known.close(generation)


def was_read(generation: Generation, finished: tuple[Fingerprint, ...]) -> bool:
    """Whether an unread file holds what was read already: a finished generation, or a copy of one."""
    generation.look()
    return not generation.offset and any(
        item.matches(generation.fd) and (generation.size == item.offset or generation.identity[1] == item.inode)
        for item in finished
    )
