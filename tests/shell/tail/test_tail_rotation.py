"""Whatever is done to a file, each line arrives once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.shell.tail.driver import Driver, append, numbered, numbers

Drive = Callable[..., Driver]


async def test_a_growing_file_is_read_as_it_grows(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 3))
    driver = drive(log)
    await driver.settle(0)
    append(log, numbered(3, 2))
    driver.clock.at += 0.1
    await driver.cycle()
    assert numbers(driver.lines) == [0, 1, 2, 3, 4]
    assert [(chunk.generation, chunk.offset, chunk.run) for chunk in driver.chunks] == [
        (0, 0, "run"),
        (0, 3 * 51, "run"),
    ]


async def test_a_replaced_file_that_never_falls_silent_holds_the_next_one_up_for_a_minute(
    drive: Drive, tmp_path: Path
) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 1))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(1000, 1))
    for number in range(1, 59):
        append(old, numbered(number, 1))
        await driver.settle(1)
    assert 1000 not in numbers(driver.lines)
    for number in range(59, 62):
        append(old, numbered(number, 1))
        await driver.settle(1)
    assert numbers(driver.lines)[-1] == 1000


async def test_a_writer_that_goes_on_at_its_old_offset_after_copytruncate_leaves_a_hole(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as writer:
        writer.write(numbered(0, 500, head=True))
        writer.flush()
        driver = drive(log)
        await driver.settle(1)
        shutil.copyfile(log, tmp_path / "train.log.1")
        os.truncate(log, 0)
        writer.write(numbered(500, 10))
        writer.flush()
        await driver.settle(1)
        driver.commit()
        driver.restart()
        writer.write(numbered(510, 10))
        writer.flush()
        await driver.settle(1)
    assert numbers(driver.lines) == [*range(520)]
    assert not any(b"\0" in line for line in driver.lines)


async def test_truncation_alone_makes_a_generation_that_is_still_empty(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 5))
    driver = drive(log)
    await driver.settle(1)
    os.truncate(log, 0)
    await driver.settle(1)
    view = driver.view(log)
    assert (view.state, view.generation, view.position, view.size) == ("live", 1, 0, 0)
    append(log, numbered(5, 5))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(10)]


async def test_a_file_renamed_to_any_name_while_the_watcher_was_down_is_found_by_its_inode(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 350, head=True))
    driver = drive(tmp_path / "*.log")
    await driver.settle(1)
    driver.commit()
    driver.kill()
    append(log, numbered(350, 100))
    log.rename(tmp_path / "a_run_of_yesterday.log")
    append(log, numbered(450, 50, head=True))
    driver.start()
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(500)]


async def test_a_rotated_file_that_nothing_has_replaced_yet_is_read_on_after_a_restart(
    drive: Drive, tmp_path: Path
) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 10, head=True))
    driver = drive(tmp_path / "train.log*")
    await driver.settle(1)
    driver.commit()
    driver.kill()
    log.rename(old)
    append(old, numbered(10, 10))
    driver.start()
    await driver.settle(2)
    assert numbers(driver.lines) == [*range(20)]
    append(log, numbered(20, 10, head=True))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]
    assert {chunk.source for chunk in driver.chunks} == {str(log)}


async def test_several_rotations_while_the_watcher_was_down_are_read_in_order(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(tmp_path / "train.log.9", numbered(90_000, 5, head=True))  # older than the watcher: not ours
    os.utime(tmp_path / "train.log.9", (1, 1))
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    for rotation in range(3):
        append(log, numbered(10 + 20 * rotation, 10))
        for number in (3, 2, 1):
            if (older := tmp_path / f"train.log.{number}").exists():
                older.rename(tmp_path / f"train.log.{number + 1}")
        log.rename(tmp_path / "train.log.1")
        append(log, numbered(20 + 20 * rotation, 10, head=True))
    driver.start()
    await driver.settle(30)
    assert numbers(driver.lines) == [*range(80 - 10)]
    assert driver.view(log).generation == 3


async def test_truncation_while_the_watcher_was_down_begins_a_generation(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(tmp_path / "train.log.1", numbered(90_000, 5, head=True))  # an old run, never read
    os.utime(tmp_path / "train.log.1", (1, 1))
    append(log, numbered(0, 100, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    log.write_bytes(numbered(100, 300, head=True))
    driver.start()
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(400)]
    assert driver.chunks[-1].generation == 1


async def test_copytruncate_while_the_watcher_was_down_loses_nothing(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 100, head=True))
    driver = drive(log)
    await driver.settle(1)
    driver.commit()
    driver.kill()
    append(log, numbered(100, 100))
    shutil.copyfile(log, tmp_path / "train.log.1")
    log.write_bytes(numbered(200, 300, head=True))
    driver.start()
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(500)]


async def test_late_writes_are_heard_across_a_restart(drive: Drive, tmp_path: Path) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(20, 10, head=True))
    await driver.settle(1)
    driver.commit()
    driver.restart()
    await driver.settle(1)
    append(old, numbered(10, 10))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]


async def test_a_deleted_file_is_let_go_after_a_minute_and_recreation_begins_a_generation(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.unlink()
    await driver.settle(58)
    assert driver.view(log).state == "live"
    await driver.settle(5)
    assert driver.view(log).state == "waiting"
    append(log, numbered(10, 40, head=True))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(50)]
    assert driver.view(log).generation == 1


async def test_a_renamed_file_that_nothing_replaces_is_followed_on(drive: Drive, tmp_path: Path) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.old"
    append(log, numbered(0, 10))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    await driver.settle(600)
    append(old, numbered(10, 10))
    await driver.settle(1)
    driver.commit()
    driver.restart()
    append(old, numbered(20, 10))
    await driver.settle(1)
    assert numbers(driver.lines) == [*range(30)]
    assert {chunk.generation for chunk in driver.chunks} == {0}


async def test_a_copy_put_in_place_of_the_file_is_read_on(drive: Drive, tmp_path: Path) -> None:
    log, fresh = tmp_path / "train.log", tmp_path / ".train.log.Xy12"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    for first in (10, 20):
        shutil.copyfile(log, fresh)
        append(fresh, numbered(first, 10))
        fresh.replace(log)  # as rsync does
        await driver.settle(1)
    assert numbers(driver.lines) == [*range(30)]
    assert {chunk.generation for chunk in driver.chunks} == {0}


async def test_a_symbolic_link_that_swapped_while_the_watcher_was_down_loses_nothing(
    drive: Drive, tmp_path: Path
) -> None:
    first, second, link = tmp_path / "session_1", tmp_path / "session_2", tmp_path / "session_latest"
    for session in (first, second):
        session.mkdir()
    append(first / "worker.out", numbered(0, 10, head=True))
    link.symlink_to(first)
    driver = drive(link / "*.out")
    await driver.settle(1)
    driver.commit()
    driver.kill()
    append(first / "worker.out", numbered(10, 10))
    append(second / "worker.out", numbered(20, 10, head=True))
    link.unlink()
    link.symlink_to(second)
    driver.start()
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]


async def test_a_file_moved_back_to_its_path_is_not_read_twice(drive: Drive, tmp_path: Path) -> None:
    log, old = tmp_path / "train.log", tmp_path / "train.log.1"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(10, 10, head=True))
    await driver.settle(10)
    old.replace(log)
    append(log, numbered(20, 10))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]


async def test_a_backup_copy_beside_the_log_is_not_read(drive: Drive, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.rename(tmp_path / "train.log.1")
    append(log, numbered(10, 10, head=True))
    shutil.copyfile(log, tmp_path / "train.log.bak")
    await driver.settle(10)
    log.rename(tmp_path / "train.log.2")
    append(log, numbered(20, 10, head=True))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]


async def test_a_backup_made_while_the_log_grew_is_not_read(drive: Drive, tmp_path: Path) -> None:
    log, backup = tmp_path / "train.log", tmp_path / "train.log.bak"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    shutil.copyfile(log, backup)
    os.utime(backup, ns=(0, log.stat().st_mtime_ns + 1_000_000))
    append(log, numbered(10, 10))
    os.utime(log, ns=(0, log.stat().st_mtime_ns + 2_000_000))
    await driver.settle(1)
    log.unlink()
    append(log, numbered(20, 10, head=True))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]


async def test_late_writes_do_not_hide_the_files_rotated_after_them(drive: Drive, tmp_path: Path) -> None:
    log, old, older = tmp_path / "train.log", tmp_path / "train.log.1", tmp_path / "train.log.2"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(20, 10, head=True))
    os.utime(log, (1e9, 1e9))
    append(old, numbered(10, 10))
    await driver.settle(1)
    driver.commit()
    driver.kill()
    old.rename(older)
    log.rename(old)
    append(log, numbered(30, 10, head=True))
    driver.start()
    await driver.settle(20)
    assert numbers(driver.lines) == [*range(40)]


async def test_late_writes_do_not_hide_what_was_rotated_meanwhile_even_if_their_file_is_gone(
    drive: Drive, tmp_path: Path
) -> None:
    log, old, older = tmp_path / "train.log", tmp_path / "train.log.1", tmp_path / "train.log.2"
    append(log, numbered(0, 10, head=True))
    os.utime(log, (1e9, 1e9))
    driver = drive(log)
    await driver.settle(1)
    log.rename(old)
    append(log, numbered(20, 10, head=True))
    os.utime(log, (1e9, 1e9))
    await driver.settle(1)
    append(old, numbered(10, 10))
    await driver.settle(1)
    driver.commit()
    driver.kill()
    old.rename(older)
    log.rename(old)
    older.unlink()
    append(log, numbered(30, 10, head=True))
    driver.start()
    await driver.settle(20)
    assert numbers(driver.lines) == [*range(40)]


async def test_a_file_written_anew_and_deleted_between_two_looks_is_read_from_its_descriptor(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.write_bytes(numbered(10, 10, head=True))
    log.unlink()
    append(log, numbered(20, 10, head=True))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(30)]
    assert driver.view(log).generation == 2


async def test_a_run_that_wrote_only_the_common_header_is_not_finished_from_an_older_run(
    drive: Drive, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    append(log, numbered(0, 10, head=True))
    driver = drive(log)
    await driver.settle(1)
    log.rename(tmp_path / "train.log.1")
    append(log, numbered(0, 0, head=True))
    await driver.settle(10)
    log.write_bytes(b"")
    await driver.settle(1)
    append(log, numbered(10, 10, head=True))
    await driver.settle(10)
    assert numbers(driver.lines) == [*range(20)]
    assert driver.view(log).generation == 2
