"""The state directory is local, writable and one's own, or the text says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from verlwatch.shell.state_dir import Served, StateDirError, network_file_system, prepare, served
from verlwatch.shell.store import Store

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw shared:2 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /home/local rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/with\040space rw - fuse.sshfs host: rw
33 22 0:43 / /lustre rw - lustre a@tcp:/fs rw
34 22 0:44 / /box rw - fuse.fuse-overlayfs fuse-overlayfs rw
35 22 0:45 / /twice rw - cifs //server/share rw
36 22 0:46 / /twice rw - tmpfs tmpfs rw
37 22 0:47 / /homework rw - btrfs /dev/vdc rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/verlwatch", None),
        ("/home", "nfs4 mounted at /home"),
        ("/home/me/.local/state/verlwatch", "nfs4 mounted at /home"),
        ("/home/local/state", None),
        ("/homework/state", None),
        ("/mnt/with space/state", "fuse.sshfs mounted at /mnt/with space"),
        ("/lustre/me", "lustre mounted at /lustre"),
        ("/box/state", None),
        ("/twice/state", None),
    ],
)
def test_the_file_system_is_that_of_the_nearest_and_latest_mount(mounts: Path, path: str, expected: str | None) -> None:
    assert network_file_system(Path(path), mounts) == expected


def test_a_symlink_is_judged_by_where_it_leads(mounts: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/lustre/me")
    assert network_file_system(tmp_path / "link" / "state", mounts) == "lustre mounted at /lustre"


def test_without_a_table_of_mounts_nothing_is_refused(tmp_path: Path) -> None:
    assert network_file_system(Path("/home"), tmp_path / "missing") is None


def test_this_host_s_own_table_can_be_read(tmp_path: Path) -> None:
    prepare(tmp_path / "state")
    assert (tmp_path / "state").is_dir()


def test_a_network_file_system_is_refused_with_the_remedy_before_anything_is_made(mounts: Path) -> None:
    with pytest.raises(StateDirError) as caught:
        prepare(Path("/home/me/state"), mounts)
    assert str(caught.value) == (
        "state directory /home/me/state is on a network file system (nfs4 mounted at /home), where SQLite is not safe; "
        f"give a local one with --state-dir, for example /var/tmp/verlwatch-{os.getuid()}"
    )
    assert not Path("/home/me/state").exists()


async def test_a_directory_that_cannot_be_written_is_refused_with_the_remedy(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(state_dir)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False).returncode == 0
    if not mounted:
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere, and mounting is not allowed here")
        state_dir.chmod(0o500)
    try:
        with pytest.raises(StateDirError, match=r"state directory \S+ cannot be written \(.+\); make it writable"):
            await Store.open(state_dir)
    finally:
        if mounted:
            subprocess.run(["umount", state_dir], check=True)


async def test_a_file_in_the_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(StateDirError, match=r"cannot be written \(File exists\)"):
        await Store.open(tmp_path / "state")


async def test_a_symlink_in_the_place_of_the_database_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "state.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateDirError, match=r"state\.db cannot be opened"):
        await Store.open(tmp_path / "state")
    assert (tmp_path / "elsewhere").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use anybody's directory")
def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(StateDirError, match="belongs to another user"):
        prepare(tmp_path)


async def test_the_url_of_the_daemon_is_there_for_as_long_as_it_runs(tmp_path: Path) -> None:
    assert served(tmp_path / "state") is None
    store = await Store.open(tmp_path / "state")
    assert served(tmp_path / "state") is None, "it serves nothing yet"
    there = Served("https://127.0.0.1:4711/", f"-----BEGIN CERTIFICATE-----\n{'A' * 8000}\n-----END CERTIFICATE-----\n")
    store.announce(there)
    assert served(tmp_path / "state") == there
    with pytest.raises(StateDirError, match=rf"in use by process {os.getpid()};"):
        await Store.open(tmp_path / "state")
    await store.close()
    assert "4711" in (tmp_path / "state" / "lock").read_text()
    assert served(tmp_path / "state") is None, "whoever listens there now is somebody else"
