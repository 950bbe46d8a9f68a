"""Which file system a path is on: decides where the database may lie, and where inotify tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_SHARED = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"}
)
_LOCAL_FUSE = "fuse.fuse-overlayfs"  # what a rootless container calls its own local disk
_LAYERED = frozenset({"overlay", "aufs", _LOCAL_FUSE})


def shared_file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """``TYPE mounted at PLACE`` if ``path``, existing or to be made, is on a network file system or FUSE.

    Where the mounts cannot be read the answer is None.
    """
    kind, place = _mount_of(path, mounts)
    shared = kind in _SHARED or (kind.startswith("fuse.") and kind != _LOCAL_FUSE)
    return f"{kind} mounted at {place}" if shared else None


def silent_file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The same for file systems on which inotify may miss changes.

    Those are the shared ones, where another host's changes are not told, and layered ones, where those made below
    the mount (by the host of a container, through a volume) are not.
    """
    kind, place = _mount_of(path, mounts)
    return f"{kind} mounted at {place}" if kind in _LAYERED else shared_file_system(path, mounts)


def _mount_of(path: Path, mounts: Path) -> tuple[str, str]:
    """Type and place of the file system that holds ``path``; the later of two mounts at one place hides the other.

    A line of mountinfo (proc(5)): ``36 35 98:0 /root /mount/point options optional… - type source options``.
    """
    try:
        table = mounts.read_text(errors="surrogateescape")
    except OSError:
        return "", ""
    where = str(path.resolve())
    kind, place = "", ""
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), before.split(" ")[4])
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(place):
            kind, place = after.split(" ")[0], point
    return kind, place
