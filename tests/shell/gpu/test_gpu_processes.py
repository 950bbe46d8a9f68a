"""Who a process is, from a /proc that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from verlwatch.shell.gpu._processes import KEPT_S, CardProcesses, Who


class _Proc:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1000.0
        self.processes = CardProcesses(lambda: self.now, str(folder))

    def put(self, pid: int, title: bytes, environ: bytes | None = b"", opened: tuple[str, ...] | None = None) -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cmdline").write_bytes(title)
        if environ is not None:
            (folder / "environ").write_bytes(environ)
        if opened is not None:
            (folder / "fd").mkdir()
            for number, path in enumerate(opened):
                (folder / "fd" / str(number)).symlink_to(path)


@pytest.fixture
def proc(tmp_path: Path) -> _Proc:
    return _Proc(tmp_path)


@pytest.mark.parametrize(
    ("title", "environ", "who"),
    [
        (
            b"ray::WorkerDict.actor_rollout_generate_sequences",
            b"PATH=/bin\0RANK=5\0WORLD_SIZE=8\0",
            Who("WorkerDict", "5"),
        ),
        (b"ray::WorkerDict", b"", Who("WorkerDict")),
        (b"ray::vLLMHttpServer.launch_server\0\0", b"LOCAL_RANK=1\0", Who("vLLMHttpServer")),
        (b"ray::IDLE", b"RANK=2\0", Who("", "2")),
        (b"python\0train.py\0ray::WorkerDict", b"RANK=0", Who("", "0")),
        (b"ray::", b"PRANK=3\0RANK=\0RANK=x\0", Who()),
        (b"ray::\x1b[31mred", b"", Who()),
        (b"", b"", Who()),
    ],
)
def test_the_title_names_the_actor_and_the_environment_the_rank(
    proc: _Proc, title: bytes, environ: bytes, who: Who
) -> None:
    proc.put(7, title, environ)
    assert proc.processes.who(7) == who


def test_a_process_that_is_gone_or_of_another_user_is_nobody(proc: _Proc) -> None:
    assert proc.processes.who(7) == Who()
    proc.put(8, b"ray::WorkerDict", environ=None)
    assert proc.processes.who(8) == Who("WorkerDict")


def test_a_process_without_a_gpu_open_is_another_one_with_that_id(proc: _Proc) -> None:
    proc.put(7, b"ray::WorkerDict", b"RANK=5\0", opened=("/dev/null", "socket:[1]"))
    proc.put(8, b"ray::WorkerDict", b"RANK=6\0", opened=("/dev/null", "/dev/nvidiactl", "/dev/nvidia3"))
    proc.put(9, b"ray::WorkerDict", b"RANK=7\0", opened=("/dev/davinci5",))
    assert [proc.processes.who(pid) for pid in (7, 8, 9)] == [Who(), Who("WorkerDict", "6"), Who("WorkerDict", "7")]


def test_what_is_known_is_looked_up_again_after_a_while(proc: _Proc) -> None:
    proc.put(7, b"ray::IDLE")
    assert proc.processes.who(7) == Who()
    proc.put(7, b"ray::WorkerDict")
    proc.now += KEPT_S - 1
    assert proc.processes.who(7) == Who()
    proc.now += 1
    assert proc.processes.who(7) == Who("WorkerDict")
    proc.put(7, b"ray::TaskRunner")
    proc.now -= 3600  # the clock was set back
    assert proc.processes.who(7) == Who("TaskRunner")
