"""What proves that a file is the one that was read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from verlwatch.core.types import Cursor
from verlwatch.shell.identity import Position, digest, position_of, rotated_from, siblings

DATA = bytes(range(256)) * 20


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "train.log"
    path.write_bytes(DATA)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


def position(offset: int) -> Position:
    return Position(
        3,
        offset,
        DATA[max(0, offset - 64) : offset],
        device=64_768,
        inode=(1 << 64) - 1,
        path="/data/train.log",
        head_size=min(1024, offset),
        head=digest(DATA[: min(1024, offset)]),
        changed_ns=1_700_000_000_123_456_789,
    )


@pytest.mark.parametrize("offset", [1, 63, 64, 1024, 1025, len(DATA)])
def test_a_position_matches_its_file(fd: int, offset: int) -> None:
    assert position(offset).matches(fd)


def test_a_position_does_not_match_another_head_mark_or_a_shorter_file(fd: int, tmp_path: Path) -> None:
    there = position(2000)
    assert not replace(there, head=digest(b"other")).matches(fd)
    assert not replace(there, mark=b"y" * 64).matches(fd)
    os.truncate(tmp_path / "train.log", 1999)
    assert not there.matches(fd)


def test_a_position_that_proves_nothing_matches_nothing(fd: int) -> None:
    assert not Position(0, 0).matches(fd)


@pytest.mark.parametrize("offset", [40, 64, 2000])
def test_a_finished_generation_is_recognised_by_its_fingerprint(fd: int, tmp_path: Path, offset: int) -> None:
    (fingerprint,) = position(offset).with_finished()
    assert fingerprint.matches(fd)
    changed = bytearray(DATA)
    changed[offset - 1] ^= 1
    (tmp_path / "train.log").write_bytes(changed)
    assert not fingerprint.matches(fd)


def test_a_token_gives_the_position_back_whatever_the_size_of_its_numbers() -> None:
    there = replace(position(2000), finished=position(1500).with_finished())
    cursor = Cursor("/data/train.log", 3, 2000, 2100, there.mark, there.token())
    assert position_of(cursor) == there


def test_no_text_of_the_log_lies_in_a_token() -> None:
    secret = b"export WANDB_API_KEY=canary-0123456789\n"
    there = Position(0, len(secret), secret, head_size=len(secret), head=digest(secret))
    assert "canary" not in replace(there, finished=there.with_finished()).token()


@pytest.mark.parametrize("token", ["", "null", "{}", "[1]", '{"device":"x"}', "\0" * 100, '"' + "9" * 5000])
def test_a_token_that_cannot_be_read_leaves_the_mark(token: str) -> None:
    assert position_of(Cursor("s", 2, 10, 10, b"mark", token)) == Position(2, 10, b"mark")


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("train.log.1", "train.log"),
        ("train.log.12.gz", "train.log"),
        ("train.log-20260521", "train.log"),
        ("train.log-20260521-1716.zst", "train.log"),
        ("train.log.2026-05-21_10", "train.log"),
        ("train.log.old", "train.log"),
        ("train.log.gz", "train.log"),
        ("train.log", None),
        ("train-2.log", None),
        ("train.2.log", None),
        ("worker-0a1b-ffff-1234.out", None),
        ("train.log.tmp", None),
    ],
)
def test_the_names_that_log_rotation_gives_are_known(name: str, original: str | None) -> None:
    assert rotated_from(name) == original


def test_siblings_are_listed_oldest_first_and_compressed_ones_not(tmp_path: Path) -> None:
    names = ("train.log", "train.log.10", "train.log.2", "train.log.1", "train.log.3.gz", "train2.log", "moved.log")
    for name in names:
        (tmp_path / name).touch()
    inode = (tmp_path / "moved.log").stat().st_ino
    found = [Path(path).name for path in siblings(str(tmp_path / "train.log"), inode)]
    assert found == ["train.log.10", "train.log.2", "train.log.1", "moved.log"]
    assert siblings(str(tmp_path / "missing" / "train.log"), 1) == []


def test_dated_siblings_are_listed_by_date(tmp_path: Path) -> None:
    for name in ("train.log-20260522", "train.log-20260520", "train.log-20260521"):
        (tmp_path / name).touch()
    found = [Path(path).name for path in siblings(str(tmp_path / "train.log"), -1)]
    assert found == ["train.log-20260520", "train.log-20260521", "train.log-20260522"]
