"""Hints that a name appeared, moved or vanished, from watchdog (inotify).

Only a hint: every file is polled anyway, as shared file systems tell nothing of what other hosts write, watches run
out, and events are dropped.  Growth of a file is never asked for: an event a line would cost more than the polling.
On file systems that are known to keep changes to themselves no watch is set at all (`silent_file_system`).
"""

from __future__ import annotations

import errno
import logging
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

from verlwatch.shell._mounts import silent_file_system

FOLDERS = 16  # watched directories; each costs a thread or two, and the others are searched every second anyway

_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]

_WATCHDOG = logging.getLogger("watchdog.observers.inotify_c")
_Folder = tuple[int, int]  # device, inode

_EXHAUSTED = {
    errno.ENOSPC: "no inotify watch is left; raise fs.inotify.max_user_watches",
    errno.EMFILE: "no inotify instance is left; raise fs.inotify.max_user_instances",
}


class Wake(FileSystemEventHandler):
    """Calls ``hint`` (from its own thread) when something changes in a watched directory.

    ``problem`` says why hints are missing though they were to be had, empty if they are not missing; files are then
    found by polling alone, later by up to the interval of looking for new files.
    """

    def __init__(self, hint: Callable[[], None]) -> None:
        self.problem = ""
        self._hint = hint
        self._observer: BaseObserver | None = None
        self._watches: dict[str, tuple[ObservedWatch, _Folder]] = {}
        self._silent: dict[tuple[str, _Folder], str | None] = {}
        self._most = FOLDERS
        self._overflows = _Overflows(hint)
        _WATCHDOG.addHandler(self._overflows)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of it, a sentence each."""
        told = [self.problem] if self.problem else []
        if self._overflows.count:
            told.append(
                f"inotify lost events ({self._overflows.count} times since the start); what appeared then was found by "
                "polling; fewer files that come and go there, or a higher fs.inotify.max_queued_events, end that"
            )
        if places := ", ".join(sorted({place for place in self._silent.values() if place})):
            told.append(f"changes are not told on every file system ({places}); new files are found there by polling")
        return tuple(told)

    def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002  # polling finds out what happened
        """Called by watchdog for each event."""
        self._hint()

    def watch(self, folders: Iterable[str]) -> None:
        """Watches exactly these directories, as far as they exist, in place of the former ones."""
        folders = list(folders)
        self.problem = ""
        if len(folders) > self._most:
            self.problem = f"{len(folders)} directories hold logs and {self._most} are watched; the others are polled"
        wanted = self._telling(folders[: self._most])
        try:
            observer = self._started(wanted)
            for folder, (watch, identity) in list(self._watches.items()):
                if observer is not None and wanted.get(folder) != identity:
                    observer.unschedule(watch)
                    del self._watches[folder]
            for folder, identity in wanted.items():
                if observer is not None and folder not in self._watches:
                    watch = observer.schedule(self, folder, recursive=False, event_filter=_EVENTS)
                    self._watches[folder] = (watch, identity)
        except OSError as error:
            why = _EXHAUSTED.get(error.errno or 0, f"watching directories failed: {error}")
            self.problem = f"{why}; until then new files are found by polling"
        except RuntimeError as error:  # not tried again: each try would leave a watch without its thread behind
            self._most = len(self._watches)
            self.problem = f"watching directories failed: {error}; new files are found by polling"

    def stop(self) -> None:
        """Ends the watching threads."""
        _WATCHDOG.removeHandler(self._overflows)
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()

    def _telling(self, folders: Iterable[str]) -> dict[str, _Folder]:
        """Those that exist, on file systems that tell of changes."""
        there = {folder: identity for folder in folders if (identity := _identity(folder)) is not None}
        known = self._silent
        self._silent = {key: known[key] if key in known else silent_file_system(Path(key[0])) for key in there.items()}
        return {folder: identity for folder, identity in there.items() if not self._silent[folder, identity]}

    def _started(self, wanted: Mapping[str, _Folder]) -> BaseObserver | None:
        """The observer, made when there is first something to watch: its making alone may find no inotify left."""
        if self._observer is None and wanted:
            observer = Observer()
            observer.start()
            self._observer = observer
        return self._observer


class _Overflows(logging.Handler):
    """Counts how often the kernel dropped events; watchdog tells that in its log alone."""

    def __init__(self, hint: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self.count = 0
        self._hint = hint

    def emit(self, record: logging.LogRecord) -> None:
        """Called by watchdog's reading thread."""
        if "overflow" in record.getMessage():
            self.count += 1
            self._hint()


def _identity(folder: str) -> _Folder | None:
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
