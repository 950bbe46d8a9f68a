"""Hints that a name appeared, moved or vanished, from watchdog (inotify).

Only a hint: every file is polled anyway, as shared file systems tell nothing of what other hosts write, watches run
out, and events are dropped.  Growth of a file is never asked for: an event a line would cost more than the polling.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

FOLDERS = 16  # watched directories; each costs a thread or two, and the others are searched every second anyway

_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]

_EXHAUSTED = {
    errno.ENOSPC: "no inotify watch is left; raise fs.inotify.max_user_watches",
    errno.EMFILE: "no inotify instance is left; raise fs.inotify.max_user_instances",
}


class Wake(FileSystemEventHandler):
    """Calls ``hint`` (from its own thread) when something changes in a watched directory.

    ``problem`` says why hints are missing, empty if they are not; files are then found by polling alone, later by up
    to the interval of looking for new files.
    """

    def __init__(self, hint: Callable[[], None]) -> None:
        self.problem = ""
        self._hint = hint
        self._observer: BaseObserver | None = None
        self._watches: dict[str, tuple[ObservedWatch, int]] = {}
        self._most = FOLDERS

    def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002  # polling finds out what happened
        """Called by watchdog for each event."""
        self._hint()

    def watch(self, folders: Iterable[str]) -> None:
        """Watches exactly these directories, as far as they exist, in place of the former ones."""
        folders = list(folders)
        self.problem = ""
        if len(folders) > self._most:
            self.problem = f"{len(folders)} directories hold logs and {self._most} are watched; the others are polled"
        wanted = {folder: inode for folder in folders[: self._most] if (inode := _inode(folder)) is not None}
        try:
            observer = self._started(wanted)
            for folder, (watch, inode) in list(self._watches.items()):
                if observer is not None and wanted.get(folder) != inode:
                    observer.unschedule(watch)
                    del self._watches[folder]
            for folder, inode in wanted.items():
                if observer is not None and folder not in self._watches:
                    watch = observer.schedule(self, folder, recursive=False, event_filter=_EVENTS)
                    self._watches[folder] = (watch, inode)
        except OSError as error:
            why = _EXHAUSTED.get(error.errno or 0, f"watching directories failed: {error}")
            self.problem = f"{why}; until then new files are found by polling"
        except RuntimeError as error:  # not tried again: each try would leave a watch without its thread behind
            self._most = len(self._watches)
            self.problem = f"watching directories failed: {error}; new files are found by polling"

    def stop(self) -> None:
        """Ends the watching threads."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()

    def _started(self, wanted: Mapping[str, int]) -> BaseObserver | None:
        """The observer, made when there is first something to watch: its making alone may find no inotify left."""
        if self._observer is None and wanted:
            observer = Observer()
            observer.start()
            self._observer = observer
        return self._observer


def _inode(folder: str) -> int | None:
    try:
        return Path(folder).stat().st_ino
    except OSError:
        return None
