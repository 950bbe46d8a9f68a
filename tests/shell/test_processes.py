"""Training processes of this host: real children that are killed, end, are strangers, write through `tee`."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from verlwatch.config import Config
from verlwatch.core.engine import Trainer
from verlwatch.core.types import Event, Extract
from verlwatch.shell import _proc
from verlwatch.shell._outputs import NoOutput, outputs
from verlwatch.shell._writers import Looks
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.observers import processes
from verlwatch.shell.observers.processes import Processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

TRAIN = (sys.executable, "-c", "import sys; print('step:1', flush=True); sys.exit(int(sys.stdin.readline() or 0))")
"""A training: a line, then it ends with the code that it is given."""
HOST = socket.gethostname()
TELLS_EXITS = tuple(map(int, platform.release().split(".")[:2])) >= (6, 15)


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts children, which are ended with the test."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "start_new_session": True} | options
        child: subprocess.Popen[Any] = subprocess.Popen(command, **options)
        children.append(child)
        return child

    yield start
    for child in children:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdin:
            child.stdin.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Returns when it holds."""
    stop = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < stop
        time.sleep(0.005)


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def written(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def end(child: subprocess.Popen[bytes], code: int) -> None:
    assert child.stdin
    child.stdin.write(f"{code}\n".encode())
    child.stdin.flush()


class Watching:
    """An observer at work, and what it has offered."""

    def __init__(self, observer: Processes, inbox: Inbox) -> None:
        self.observer = observer
        self._inbox = inbox
        self.events: list[tuple[str, Event]] = []

    async def next(self, seconds: float = 5.0) -> Event:
        """The next event that is offered."""
        while True:
            items = await self._inbox.get(1, timeout_s=seconds)
            assert items, "nothing was told"
            (extract,) = items
            assert isinstance(extract, Extract)
            (event,) = extract.records
            assert isinstance(event, Event)
            assert extract.source == event.origin.source == event.origin.kind == "process"
            assert event.scope == (("host", HOST),)
            self.events.append((extract.run, event))
            return event

    async def says(self, **expected: object) -> Event:
        """The next event, which has these attributes."""
        event = await self.next()
        assert {key: event.attributes.get(key) for key in expected} == expected
        return event

    async def says_nothing(self, seconds: float = 0.3) -> None:
        assert await self._inbox.get(1, timeout_s=seconds) == []


def configured(pids: dict[str, int | None] | None = None) -> Config:
    runs = [{"name": run, "logs": [f"/logs/{run}.log"], "pid": pid} for run, pid in (pids or {"run7": None}).items()]
    return Config.model_validate({"runs": runs})


@asynccontextmanager
async def watching(
    log: Path | None = None, config: Config | None = None, inbox: Inbox | None = None
) -> AsyncIterator[Watching]:
    inbox = Inbox() if inbox is None else inbox
    files = [("run7", str(log))] if log else []
    observer = Processes(inbox, SystemClock(), config or configured(), lambda: files)
    task = asyncio.ensure_future(observer.run())
    try:
        yield Watching(observer, inbox)
    finally:
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


# ---------------------------------------------------------------------------------------------------- death
async def test_the_kill_of_the_process_that_writes_the_log_is_told_at_once(spawn: Any, log: Path) -> None:
    with log.open("wb") as file:
        child = spawn(*TRAIN, stdout=file)
    until(lambda: written(log))
    async with watching(log) as watch:
        await watch.says(state="watched", pid=child.pid, role="writer", name="python")
        killed_at = time.monotonic()
        child.kill()
        event = await watch.says(state="gone", pid=child.pid, exit="signal 9", role="writer")
        assert time.monotonic() - killed_at < 1.0
        assert event.severity == "critical"
        assert 0 < float(event.attributes["lasted_s"]) < 30
        assert abs(float(event.attributes["started_at"]) + float(event.attributes["lasted_s"]) - time.time()) < 1
        assert "oom_kills" not in event.attributes


@pytest.mark.parametrize(("code", "severity"), [(0, "info"), (3, "critical")])
async def test_an_exit_is_told_with_its_code(spawn: Any, log: Path, code: int, severity: str) -> None:
    child = spawn(*TRAIN)
    async with watching(config=configured({"run7": child.pid})) as watch:
        await watch.says(state="watched", role="named")
        end(child, code)
        event = await watch.says(state="gone", exit=f"code {code}")
        assert event.severity == severity


async def test_how_a_process_ended_that_nobody_can_tell_any_more_is_unknown(spawn: Any) -> None:
    child = spawn(*TRAIN)
    process = _proc.look(child.pid)
    assert process is not None
    pidfd = os.pidfd_open(child.pid)
    try:
        assert _proc.exit_code(process, pidfd) is None
        child.kill()
        child.wait()
        assert _proc.exit_text(_proc.exit_code(process, pidfd)) == ("signal 9" if TELLS_EXITS else "")
        assert _proc.exit_text(_proc.exit_code(process)) == ""
    finally:
        os.close(pidfd)


async def test_without_pidfds_processes_are_looked_for(spawn: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    monkeypatch.setattr(processes, "TURN_S", 0.05)
    child = spawn(*TRAIN)
    async with watching(config=configured({"run7": child.pid})) as watch:
        await watch.says(state="watched")
        assert list(watch.observer.notices()) == [
            "processes are looked for once a second: no pidfd ([Errno 38] Function not implemented)"
        ]
        child.kill()
        await watch.says(state="gone", exit="signal 9")


async def test_a_stranger_with_the_same_pid_is_not_the_one_that_was_watched(
    spawn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", lambda pid: (_ for _ in ()).throw(OSError(errno.ENOSYS, "no")))
    monkeypatch.setattr(processes, "TURN_S", 0.05)
    child = spawn(*TRAIN)
    look = _proc.look

    def later(pid: int) -> _proc.Process | None:
        process = look(pid)
        return process and process._replace(started=process.started + 1)

    async with watching(config=configured({"run7": child.pid})) as watch:
        await watch.says(state="watched")
        monkeypatch.setattr(_proc, "look", later)
        await watch.says(state="gone", exit="")
        monkeypatch.setattr(processes, "LOOK_S", 0.0)
        await watch.says_nothing()


async def test_a_pid_that_has_changed_hands_between_two_looks_is_not_watched(
    spawn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = spawn(*TRAIN)
    look, looks = _proc.look, iter(range(100))

    def other(pid: int) -> _proc.Process | None:
        process = look(pid)
        return process and process._replace(started=next(looks))

    monkeypatch.setattr(_proc, "look", other)
    before = descriptors()
    async with watching(config=configured({"run7": child.pid})) as watch:
        await watch.says_nothing()
        assert descriptors() <= before + 3  # the thread's and the loop's own


async def test_a_configured_process_that_is_not_there_is_told_once(spawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LOOK_S", 0.05)
    monkeypatch.setattr(processes, "TURN_S", 0.05)
    child = spawn("true")
    child.wait()
    async with watching(config=configured({"run7": child.pid})) as watch:
        event = await watch.says(state="gone", exit="", pid=child.pid, role="named")
        assert "lasted_s" not in event.attributes
        assert event.severity == "warning"
        await watch.says_nothing()


@pytest.mark.parametrize(
    ("counter", "code", "told"),
    [
        ("/sys/fs/cgroup/job/memory.events.local", None, 2),
        ("/sys/fs/cgroup/job/memory.events.local", 1, 2),
        ("/sys/fs/cgroup/job/memory.events.local", 0, None),
        (_proc.HOST_OOM, None, 2),
        (_proc.HOST_OOM, 1, None),
    ],
)
async def test_kills_for_want_of_memory_are_told_with_the_death_that_they_may_explain(
    spawn: Any, monkeypatch: pytest.MonkeyPatch, counter: str, code: int | None, told: int | None
) -> None:
    kills = {counter: 4}
    monkeypatch.setattr(_proc, "oom_counter", lambda _: counter)
    monkeypatch.setattr(_proc, "oom_kills", kills.get)
    child = spawn(*TRAIN)
    async with watching(config=configured({"run7": child.pid})) as watch:
        await watch.says(state="watched")
        kills[counter] = 6
        if code is None:
            child.kill()
        else:
            end(child, code)
        await watch.says(state="gone", oom_kills=told)


def test_the_counter_of_memory_is_that_of_the_cgroup_or_of_the_host() -> None:
    counter = _proc.oom_counter(os.getpid())
    assert counter == _proc.HOST_OOM or counter.startswith("/sys/fs/cgroup/")
    assert (_proc.oom_kills(counter) or 0) >= 0
    assert _proc.oom_kills("/sys/fs/cgroup/gone/memory.events") is None
    assert _proc.oom_kills(_proc.HOST_OOM) is not None


# ---------------------------------------------------------------------------------------------------- who writes
async def test_of_a_pipe_to_tee_the_training_is_watched(spawn: Any, log: Path) -> None:
    shell = spawn("sh", "-c", f'"$0" -c "$1" | tee {log}', TRAIN[0], TRAIN[2])
    until(lambda: written(log))
    async with watching(log) as watch:
        event = await watch.says(state="watched", role="writer", name="python", weak=None)
        assert event.attributes["pid"] != shell.pid
        os.kill(int(event.attributes["pid"]), signal.SIGKILL)
        await watch.says(state="gone", pid=event.attributes["pid"])


async def test_tee_is_a_weak_witness_where_nobody_else_is_seen(spawn: Any, log: Path) -> None:
    child = spawn("tee", str(log))
    end(child, 1)
    until(lambda: written(log))
    async with watching(log) as watch:
        await watch.says(state="watched", name="tee", weak=1, pid=child.pid)
        child.kill()
        await watch.says(state="gone", exit="", weak=1)


async def test_of_a_launcher_and_what_it_starts_the_training_is_watched(spawn: Any, log: Path) -> None:
    with log.open("wb") as file:
        shell = spawn("sh", "-c", '"$0" -c "$1"; true', TRAIN[0], TRAIN[2], stdout=file)
    until(lambda: written(log))
    async with watching(log) as watch:
        event = await watch.says(state="watched", name="python")
        assert event.attributes["pid"] != shell.pid


async def test_who_only_reads_the_log_is_not_its_writer(spawn: Any, log: Path) -> None:
    log.write_text("step:1\n")
    spawn("tail", "-f", str(log))
    async with watching(log) as watch:
        await watch.says_nothing()


async def test_the_next_training_that_writes_the_log_is_watched_too(
    spawn: Any, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LEAST_LOOK_S", 0.05)
    monkeypatch.setattr(processes, "LOOK_S", 0.05)
    with log.open("wb") as file:  # which this process holds open, too
        first = spawn(*TRAIN, stdout=file)
        until(lambda: written(log))
        async with watching(log) as watch:
            await watch.says(state="watched", pid=first.pid)
            first.kill()
            await watch.says(state="gone", pid=first.pid)
            second = spawn(*TRAIN, stdout=file)
            await watch.says(state="watched", pid=second.pid)


async def test_what_a_training_has_left_behind_is_not_the_next_one(
    spawn: Any, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LEAST_LOOK_S", 0.05)
    monkeypatch.setattr(processes, "LOOK_S", 0.05)
    monkeypatch.setattr(processes, "TURN_S", 0.05)
    with log.open("wb") as file:
        child = spawn(
            sys.executable, "-c", f"import subprocess; subprocess.Popen(['sleep', '60']); {TRAIN[2]}", stdout=file
        )
    until(lambda: written(log))
    async with watching(log) as watch:
        await watch.says(state="watched", name="python")
        process = _proc.look(child.pid)
        until(lambda: process and process.age_s > 0.5)
        child.kill()
        await watch.says(state="gone")
        assert Looks().writers({"run7": [str(log)]})["run7"].title == "sleep"
        await watch.says_nothing()


def test_a_log_is_found_among_two_hundred_processes_in_a_moment(spawn: Any, log: Path) -> None:
    spawn("sh", "-c", "for i in $(seq 200); do sleep 60 & done; wait")
    with log.open("wb") as file:
        child = spawn(*TRAIN, stdout=file)
    until(lambda: written(log))
    until(lambda: len(_proc.pids()) > 200)
    began = time.monotonic()
    found = Looks().writers({"run7": [str(log)]})
    assert time.monotonic() - began < 1.0
    assert found["run7"].process.pid == child.pid


def test_a_look_that_ran_out_of_time_goes_on_where_it_stopped() -> None:
    looks = Looks()
    last = _proc.pids()[-1]
    assert looks.look({"none"}, -1.0).links == []
    assert looks._next == _proc.pids()[0]
    looks.look({"none"})
    assert (looks._next, last > 0) == (0, True)


# ---------------------------------------------------------------------------------------------------- what a log names
@pytest.fixture
def trainer(spawn: Any) -> subprocess.Popen[bytes]:
    """A process that calls itself as Ray calls a trainer."""
    child: subprocess.Popen[bytes] = spawn("bash", "-c", "exec -a ray::TaskRunner.run sleep 60")
    until(lambda: _proc.title(child.pid) == "ray::TaskRunner")
    return child


async def test_the_trainer_that_a_log_names_for_this_host_is_watched(trainer: subprocess.Popen[bytes]) -> None:
    async with watching() as watch:
        watch.observer.heard("run7", Trainer("TaskRunner", trainer.pid, host=HOST, at=time.time()))
        await watch.says(state="watched", role="trainer", name="ray::TaskRunner", pid=trainer.pid)
        trainer.kill()
        await watch.says(state="gone", exit="signal 9")


async def test_a_trainer_is_known_by_an_address_of_this_host(trainer: subprocess.Popen[bytes]) -> None:
    async with watching() as watch:
        watch.observer.heard("run7", Trainer("TaskRunner", trainer.pid, ip="127.0.0.1"))
        await watch.says(state="watched", role="trainer")


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "gpu-node-99"},
        {"host": "", "ip": "203.0.113.9"},
        {"host": ""},
        {"name": "WorkerDict"},
        {"at": 1_000_000.0},
    ],
    ids=["another host", "another address", "no host and nobody writes the log", "another name", "older than it"],
)
async def test_a_pid_that_may_be_a_stranger_is_not_watched(
    trainer: subprocess.Popen[bytes], changed: dict[str, Any]
) -> None:
    async with watching() as watch:
        named = Trainer("TaskRunner", trainer.pid, host=HOST, at=time.time())
        watch.observer.heard("run7", named._replace(**changed))
        await watch.says_nothing()


async def test_the_writer_of_lines_is_believed_where_the_log_is_written_from_here(
    spawn: Any, log: Path, trainer: subprocess.Popen[bytes]
) -> None:
    with log.open("wb") as file:
        driver = spawn(*TRAIN, stdout=file)
    until(lambda: written(log))
    async with watching(log) as watch:
        watch.observer.heard("run7", Trainer("TaskRunner", trainer.pid))
        told = {(event := await watch.next()).attributes["role"]: event.attributes["pid"] for _ in range(2)}
        assert told == {"trainer": trainer.pid, "writer": driver.pid}


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
async def test_a_trainer_in_a_container_is_found_by_the_pid_it_has_inside(spawn: Any) -> None:
    spawn("unshare", "--pid", "--fork", "bash", "-c", "sleep 0 & exec -a ray::TaskRunner sleep 60")
    until(lambda: any(_proc.title(pid) == "ray::TaskRunner" for pid in _proc.pids()))
    (outside,) = (pid for pid in _proc.pids() if _proc.title(pid) == "ray::TaskRunner")
    async with watching() as watch:
        watch.observer.heard("run7", Trainer("TaskRunner", 1, host=HOST))
        await watch.says(state="watched", pid=outside)


# ---------------------------------------------------------------------------------------------------- the observer
async def test_what_a_full_inbox_did_not_take_is_offered_again(spawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TURN_S", 0.02)
    child, inbox = spawn(*TRAIN), Inbox(max_items=0)
    async with watching(config=configured({"run7": child.pid}), inbox=inbox) as watch:
        await watch.says_nothing(0.1)
        child.kill()
        await watch.says_nothing(0.1)
        inbox._max_items = 1
        await watch.says(state="watched")
        await watch.says(state="gone")


async def test_at_most_64_processes_are_watched_and_no_descriptor_is_left(spawn: Any) -> None:
    before = descriptors()
    children = [spawn("sleep", "60", stdin=subprocess.DEVNULL) for _ in range(66)]
    async with watching(config=configured({f"run{n}": child.pid for n, child in enumerate(children)})) as watch:
        for _ in range(64):
            await watch.says(state="watched")
        await watch.says_nothing(0.05)
        assert list(watch.observer.notices()) == ["64 processes are watched; further ones are not"]
        children[0].kill()
        await watch.says(state="gone", pid=children[0].pid)
    assert descriptors() == before


async def test_a_run_that_is_no_longer_configured_is_let_go(spawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LEAST_LOOK_S", 0.0)
    first, second = spawn(*TRAIN), spawn(*TRAIN)
    async with watching(config=configured({"run7": first.pid})) as watch:
        await watch.says(state="watched", pid=first.pid)
        watch.observer.reconfigure(configured({"run8": second.pid}))
        await watch.says(state="watched", pid=second.pid)
        first.kill()
        await watch.says_nothing()


# ---------------------------------------------------------------------------------------------------- run --pid
def test_the_files_of_a_process_are_those_of_its_output_and_error(spawn: Any, log: Path) -> None:
    errors = log.with_suffix(".err")
    with log.open("wb") as file, errors.open("wb") as other:
        child = spawn(*TRAIN, stdout=file, stderr=other)
    assert outputs(child.pid) == (str(log), str(errors))


def test_a_pipe_is_followed_to_the_file_that_tee_writes(spawn: Any, log: Path) -> None:
    spawn("sh", "-c", f'"$0" -c "$1" 2>&1 | cat | tee {log}', TRAIN[0], TRAIN[2])
    until(lambda: written(log))
    child = Looks().writers({"run7": [str(log)]})["run7"].process.pid
    assert _proc.title(child) == "python"
    assert outputs(child) == (str(log),)


def test_a_launcher_leads_to_the_file_of_what_it_starts(spawn: Any, log: Path) -> None:
    shell = spawn("sh", "-c", f'"$0" -c "$1" > {log}; true', TRAIN[0], TRAIN[2], stderr=subprocess.DEVNULL)
    until(lambda: written(log))
    assert outputs(shell.pid) == (str(log),)


def why(pid: int) -> str:
    with pytest.raises(NoOutput) as caught:
        outputs(pid)
    return str(caught.value)


def test_output_that_is_in_no_file_is_told_with_where_it_goes(spawn: Any, log: Path) -> None:
    child = spawn("sleep", "60", stderr=subprocess.DEVNULL)
    until(lambda: _proc.title(child.pid) == "sleep")
    assert why(child.pid) == (
        f"--pid {child.pid}: no file holds what sleep says: its output is thrown away (/dev/null); "
        "name it with --log, or start the training with `2>&1 | tee train.log`"
    )
    ours, theirs = os.openpty()
    child = spawn("sleep", "60", stdout=theirs, stderr=theirs)
    assert f"its output goes to a terminal ({os.ttyname(theirs)})" in why(child.pid)
    os.close(ours)
    os.close(theirs)
    with log.open("wb") as file:
        child = spawn("sleep", "60", stdout=file, stderr=file)
    log.unlink()
    assert f"its log was deleted ({log})" in why(child.pid)
    one, other = socket.socketpair()
    with one, other:
        child = spawn("sleep", "60", stdout=one, stderr=one)
        assert "its output goes to a socket, perhaps that of a service or a container" in why(child.pid)


def test_a_pipe_whose_reader_writes_no_file_is_told_with_the_reader(spawn: Any) -> None:
    shell = spawn("sh", "-c", "sleep 60 2>&1 | cat > /dev/null")
    until(lambda: any(_proc.title(pid) == "cat" and _parent(pid) == shell.pid for pid in _proc.pids()))
    (sleep,) = (pid for pid in _proc.pids() if _proc.title(pid) == "sleep" and _parent(pid) == shell.pid)
    (cat,) = (pid for pid in _proc.pids() if _proc.title(pid) == "cat" and _parent(pid) == shell.pid)
    assert f"its output goes through a pipe to cat (pid {cat}), which writes no file of its own" in why(sleep)


def _parent(pid: int) -> int:
    process = _proc.look(pid)
    return process.parent if process else 0


def test_a_process_that_is_not_there_is_told(spawn: Any) -> None:
    child = spawn("true")
    child.wait()
    assert why(child.pid) == (f"--pid {child.pid}: no such process on this host; `ps -ef` shows those that there are")


def test_a_process_of_somebody_else_is_told(spawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    child = spawn("sleep", "60")
    links = _proc.links

    def refuse(pid: int, most: int | None = None) -> Iterator[_proc.Link]:
        if pid == child.pid:
            raise PermissionError(errno.EACCES, "Permission denied")
        return links(pid, most)

    monkeypatch.setattr(_proc, "links", refuse)
    assert why(child.pid) == (
        f"--pid {child.pid}: belongs to another user; run verlwatch as that user or as root, or name its log with --log"
    )


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (b"python3\0-m\0verl.trainer.main_ppo\0trainer.token=x\0", "python -m verl.trainer.main_ppo"),
        (b"/usr/bin/python3.11\0-u\0/data/my/train.py\0--key=x\0", "python train.py"),
        (b"python3\0-c\0print('x')\0", "python"),
        (b"ray::TaskRunner.run()\0\0\0", "ray::TaskRunner"),
        (b"ray::IDLE\0", "ray::IDLE"),
        (b"/usr/bin/tee\0train.log\0", "tee"),
        (b"", ""),
    ],
)
def test_a_title_names_the_program_and_keeps_its_arguments_to_itself(
    arguments: bytes, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cmdline").write_bytes(arguments)
    monkeypatch.setattr(_proc, "Path", lambda _: tmp_path / "cmdline")
    assert _proc.title(4711) == title


def test_a_cgroup_whose_name_is_no_text_has_the_counter_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def bytes_of(path: Path, encoding: str | None = None, errors: str | None = None) -> str:
        named = str(path) == "/proc/4711/cgroup"
        return b"0::/job-\xff\n".decode("utf-8", errors or "strict") if named else read(path, encoding, errors)

    monkeypatch.setattr(Path, "read_text", bytes_of)
    assert _proc.oom_counter(4711) == _proc.HOST_OOM
