"""Whatever two steps a process is killed between, no message is lost and none is told under two ids."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import SOAK

LIVES = 1000 if SOAK else 40
DELIVERER = Path(__file__).with_name("deliverer.py")
ROOT = DELIVERER.parents[2]


class Lived(NamedTuple):
    """How many kills there were, what the receivers got, and where it is kept."""

    kills: int
    taken: list[dict[str, Any]]
    folder: Path


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("state")
    done = subprocess.run(
        [sys.executable, DELIVERER, folder, "7", str(LIVES)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    taken = [json.loads(line) for line in (folder / "taken").read_text().splitlines()]
    return Lived(int(done.stdout), taken, folder)


def told_by(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """(receiver, id of a message) -> the id under which it was told, and how that ended."""
    connection = sqlite3.connect(folder / "state.db")
    rows = {
        row_id: (receiver, key, status, whole)
        for row_id, receiver, key, status, whole in connection.execute(
            "SELECT id, receiver, dedup_key, status, part_of FROM outbox"
        )
    }
    connection.close()
    found = {}
    for receiver, key, status, whole in rows.values():
        last = (receiver, key, status, whole)
        while last[2] == "merged":
            last = rows[last[3]]
        found[receiver, key] = last[1:3]
    return found


def test_of_a_thousand_kills_none_loses_a_message_or_tells_it_under_two_ids(lived: Lived) -> None:
    assert lived.kills > 0.9 * LIVES
    got = defaultdict(list)
    for one in lived.taken:
        got[one["receiver"], one["id"]].append((one["told"], one["late"]))
    told = told_by(lived.folder)
    committed = int((lived.folder / "committed").read_text())
    for number in range(committed):
        for receiver in ("even", "odd"):
            key, status = told[receiver, f"k{number}"]
            assert (status in {"done", "dead"}, (receiver, key) in got) == (True, True), (receiver, number)
    assert [key for key, contents in got.items() if any(one != contents[0] for one in contents)] == []
    under = defaultdict(set)
    for (receiver, key), ((lines, _), *_) in got.items():
        for line in lines:
            under[receiver, line].add(key)
    assert {line: keys for line, keys in under.items() if len(keys) > 1} == {}
    assert any(key.startswith("digest") for _, key in got)
    assert any(late for ((_, late), *_) in got.values())
    assert any(len(contents) > 1 for contents in got.values()), "nothing came twice: nobody was killed in between"


def test_messages_of_one_incident_come_in_order_through_all_kills(lived: Lived) -> None:
    first: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in lived.taken:
        for line in one["told"]:
            incident, title = line.split()
            number = int(title.removeprefix("m"))
            if number not in first[one["receiver"], incident]:
                first[one["receiver"], incident].append(number)
    assert len(first) > LIVES
    assert [numbers for numbers in first.values() if any(later < earlier for earlier, later in pairwise(numbers))] == []
