"""A Ray session stands for the logs of its newest training, and for nobody else's."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.tail.driver import Driver, append, numbered, numbers
from tests.shell.tail.ray_files import Session
from verlwatch.core.engine import Engine
from verlwatch.replay import replay
from verlwatch.shell import _ray
from verlwatch.shell._discover import discover
from verlwatch.shell._ray import Sessions, is_session_file

Drive = Callable[..., Driver]

RECORDED = Path(__file__).parents[2] / "data" / "ray_session"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def named(path: Path | str, sessions: Sessions | None = None) -> list[str]:
    """The files that the path stands for, in their order."""
    return [Path(file).name for file in discover({"run": (str(path),)}, (), 100, sessions=sessions).runs]


def both(*outs: Path) -> set[str]:
    return {path.name for out in outs for path in (out, out.with_suffix(".err"))}


def test_the_newest_training_with_its_driver_is_taken_and_the_trainer_comes_first(session: Session) -> None:
    session.worker("01000000", 5, "TaskRunner")
    trainer = session.worker("03000000", 7, "TaskRunner")
    rank = session.worker("03000000", 8, "WorkerDict")
    helper = session.worker("03000000", 9, "f", task=True)
    session.driver("raysubmit_a", "TaskRunner pid=5")
    driver = session.driver("raysubmit_b", "f pid=9", "TaskRunner pid=7")
    files = named(session.path)
    assert set(files) == both(trainer, rank, helper) | {driver.name}
    assert set(files[:2]) == both(trainer)
    assert files[2] == driver.name


def test_the_folder_of_logs_names_the_session_too(session: Session) -> None:
    trainer = session.worker("01000000", 5, "TaskRunner")
    assert set(named(session.logs)) == both(trainer)


def test_jobs_that_train_nothing_are_passed_over(session: Session) -> None:
    trainer = session.worker("01000000", 5, "main_task", task=True)
    session.worker("02000000", 6, "JobSupervisor")
    session.worker("03000000", 7, "preprocess", task=True)
    session.driver("raysubmit_c", "preprocess pid=7")
    assert set(named(session.path)) == both(trainer)


def test_a_worker_that_was_started_in_advance_belongs_to_the_job_that_it_names_inside(session: Session) -> None:
    trainer = session.worker("01000000", 5, "TaskRunner", named_job="ffffffff")
    idle = session.logs / f"worker-{6:056x}-ffffffff-6.out"
    idle.touch()
    sessions = Sessions()
    assert set(named(session.path, sessions)) == both(trainer)
    append(idle, b":job_id:01000000\n:actor_name:WorkerDict\n")
    assert set(named(session.path, sessions)) == both(trainer) | {idle.name}


def test_the_number_of_a_job_is_written_with_its_lowest_byte_first(session: Session) -> None:
    session.worker("ff000000", 5, "TaskRunner")
    newer = session.worker("02010000", 6, "TaskRunner")
    assert set(named(session.path)) == both(newer)


def test_where_the_trainer_is_on_another_host_the_drivers_log_alone_tells(session: Session) -> None:
    driver = session.driver("raysubmit_a", "TaskRunner pid=5, ip=192.0.2.7")
    session.driver("raysubmit_b", "preprocess pid=5, ip=192.0.2.7")
    assert named(session.path) == [driver.name]


def test_a_pid_of_another_host_does_not_make_a_driver_ours(session: Session) -> None:
    trainer = session.worker("01000000", 5, "TaskRunner")
    session.driver("raysubmit_b", "TaskRunner pid=5, ip=192.0.2.7")
    assert set(named(session.path)) == both(trainer)


def test_a_log_that_may_not_be_read_yet_is_looked_into_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = session.worker("01000000", 5, "TaskRunner")
    sessions = Sessions()
    with monkeypatch.context() as patched:

        def refused(path: str, size: int) -> bytes:
            raise PermissionError(path)

        patched.setattr(_ray, "_first", refused)
        assert named(session.path, sessions) == []
    assert set(named(session.path, sessions)) == both(trainer)


def test_a_driver_is_looked_into_until_it_repeats_a_worker_of_this_host(session: Session) -> None:
    rank = session.worker("01000000", 5, "WorkerDict")
    driver = session.driver("raysubmit_a", "TaskRunner pid=9, ip=192.0.2.7")
    sessions = Sessions()
    assert set(named(session.path, sessions)) == both(rank)
    append(driver, b"(WorkerDict pid=5) hello\n")
    assert set(named(session.path, sessions)) == both(rank) | {driver.name}


def test_logs_that_were_put_elsewhere_have_no_sessions_beside_them() -> None:
    worker = f"worker-{7:056x}-01000000-7.out"
    assert is_session_file(f"/ray/session_1/logs/{worker}", "/ray/session_2/logs")
    assert is_session_file(f"/kept/a/{worker}", "/kept/a")
    assert not is_session_file(f"/kept/a/{worker}", "/kept/b")
    assert not is_session_file(f"/ray/session_1/logs/{worker}", "/other/session_1/logs")
    assert not is_session_file("/ray/session_1/logs/train.log", "/ray/session_1/logs")


@pytest.mark.parametrize("job", ["01000000", "raysubmit_a"])
def test_one_job_can_be_named(session: Session, job: str) -> None:
    trainer = session.worker("01000000", 5, "MyOwn")
    driver = session.driver("raysubmit_a", "MyOwn pid=5")
    session.worker("02000000", 6, "TaskRunner")
    assert set(named(session.path / job)) == both(trainer) | {driver.name}


def test_a_session_without_a_training_waits(session: Session) -> None:
    session.worker("01000000", 5, "f", task=True)
    found = discover({"run": (str(session.path), str(session.path / "07000000"))}, (), 100)
    assert found.runs == {}
    assert set(found.unmatched) == {str(session.path), str(session.path / "07000000")}
    assert str(session.logs) in found.folders


def test_a_folder_that_is_no_session_is_named_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    append(tmp_path / "logs" / "train.log", b"step:1\n")
    assert named(tmp_path) == [tmp_path.name]


async def test_the_next_training_of_a_session_follows_the_one_before_once_that_is_read(
    drive: Drive, session: Session
) -> None:
    first = session.worker("01000000", 5, "TaskRunner")
    driver = drive(session.become_latest())
    append(first, numbered(0, 10))
    await driver.settle(2)
    append(first, numbered(10, 10))
    second = session.worker("02000000", 6, "TaskRunner")
    append(second, numbered(20, 10))
    await driver.settle(2)
    assert sorted(numbers(driver.lines)) == [*range(30)]
    await driver.settle(10)
    append(first, numbered(90, 1))  # whoever still writes there is another training
    append(second, numbered(30, 10))
    await driver.settle(10)
    assert sorted(numbers(driver.lines)) == [*range(40)]
    assert {view.source for view in driver.tail.sources()} == {str(second), str(second.with_suffix(".err"))}


async def test_a_new_session_continues_the_run_and_the_old_one_is_read_to_its_end(drive: Drive, tmp_path: Path) -> None:
    old, new = Session(tmp_path, "session_1"), Session(tmp_path, "session_2")
    first = old.worker("01000000", 5, "TaskRunner")
    append(first, numbered(0, 10))
    driver = drive(old.become_latest())
    await driver.settle(1)
    new.become_latest()
    append(first, numbered(10, 10))
    await driver.settle(3)
    second = new.worker("01000000", 6, "TaskRunner")
    append(second, numbered(20, 10))
    await driver.settle(3)
    assert numbers(driver.lines) == [*range(30)]
    await driver.settle(10)
    assert {view.source for view in driver.tail.sources()} == {str(second), str(second.with_suffix(".err"))}


@pytest.mark.parametrize("training", [True, False], ids=["training", "nothing_yet"])
async def test_what_an_old_session_said_while_the_watcher_was_down_is_read_first(
    drive: Drive, tmp_path: Path, *, training: bool
) -> None:
    old, new = Session(tmp_path, "session_1"), Session(tmp_path, "session_2")
    first = old.worker("01000000", 5, "TaskRunner")
    append(first, numbered(0, 10))
    driver = drive(old.become_latest())
    await driver.settle(1)
    driver.commit()
    driver.kill()
    append(first, numbered(10, 10))
    new.become_latest()
    second = new.worker("01000000", 6, "TaskRunner" if training else "f")
    append(second, numbered(20, 10))
    driver.start()
    await driver.settle(20)
    assert sorted(numbers(driver.lines)) == [*range(30 if training else 20)]


async def test_two_entries_of_one_session_keep_their_jobs_apart_across_a_restart(
    drive: Drive, session: Session
) -> None:
    one, two = session.worker("01000000", 5, "TaskRunner"), session.worker("02000000", 6, "TaskRunner")
    driver = drive()
    driver.patterns = {"newest": (str(session.path),), "first": (str(session.path / "01000000"),)}
    driver.restart()
    for path in (one, two):
        append(path, numbered(0, 10))
    for _ in range(2):
        await driver.settle(10)
        driver.commit()
        driver.restart()
        append(one, numbered(0, 5))
        append(two, numbered(0, 5))
    runs = {(chunk.run, Path(chunk.source).stem[-1]) for chunk in driver.chunks}
    assert runs == {("first", "5"), ("newest", "6")}


def test_a_recorded_session_is_one_run_of_one_attempt(tmp_path: Path) -> None:
    for packed in RECORDED.glob("*.gz"):
        (tmp_path / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    files = [Path(path) for path in discover({"run": (str(tmp_path),)}, (), 100).runs]
    assert len(files) == 10
    assert files[0].stem.endswith("-10691")
    engine = Engine()
    steps = [row.step for outcome, _ in replay(engine, files, "run") for row in outcome.steps]
    assert steps == [*range(301)]  # 0 is the validation before training
    assert engine.runs["run"].attempts.current == 1
