"""On which file systems inotify is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from verlwatch.shell import wake
from verlwatch.shell._mounts import silent_file_system
from verlwatch.shell.wake import Wake

TABLE = """\
22 1 0:20 / / rw shared:1 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
23 22 8:1 / /data rw - ext4 /dev/vda1 rw
24 22 0:40 / /home rw - nfs4 server:/export rw
25 22 0:41 / /scratch rw - lustre a@tcp:/fs rw
26 22 0:42 / /mnt/s3 rw - fuse.s3fs s3fs rw
27 22 0:43 / /box rw - fuse.fuse-overlayfs fuse-overlayfs rw
28 22 0:44 / /dev/shm rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/log", "overlay mounted at /"),
        ("/data/run", None),
        ("/home/me/logs", "nfs4 mounted at /home"),
        ("/scratch/run", "lustre mounted at /scratch"),
        ("/mnt/s3/logs", "fuse.s3fs mounted at /mnt/s3"),
        ("/box/logs", "fuse.fuse-overlayfs mounted at /box"),
        ("/dev/shm/logs", None),  # noqa: S108  # only a name
    ],
)
def test_shared_and_layered_file_systems_do_not_tell_of_changes(
    tmp_path: Path, path: str, expected: str | None
) -> None:
    (tmp_path / "mountinfo").write_text(TABLE)
    assert silent_file_system(Path(path), tmp_path / "mountinfo") == expected


def test_a_directory_on_such_a_file_system_is_not_watched_and_that_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    asked = []

    def kind(path: Path) -> str | None:
        asked.append(path)
        return "nfs4 mounted at /far" if path == far else None

    monkeypatch.setattr(wake, "silent_file_system", kind)
    watching = Wake(lambda: None)
    try:
        for _ in range(3):
            watching.watch([str(far), str(near)])
        assert set(watching._watches) == {str(near)}
        assert watching.problem == ""
        assert watching.notices == (
            "changes are not told on every file system (nfs4 mounted at /far); new files are found there by polling",
        )
        assert asked == [far, near], "the mounts are not read at every search"
        watching.watch([str(near)])
        assert not watching.notices
    finally:
        watching.stop()
