"""Processes that deliver for as long as they live, each killed by SIGKILL between two steps.

    python deliverer.py STATE_DIR SEED LIVES

A life is a child that takes up the state directory, commits what the judge would commit again (everything since the
last commit it knows of, as a re-read log does), and delivers in virtual time.  Steps are what reaches the store or a
receiver: before and after each the child may die.  What the receivers got is appended to ``taken`` in the state
directory: one JSON line with the id, the title, and the incidents and lines that it tells of.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

from tests.fakes.clock import VirtualClock
from tests.fakes.outbox import notification, outcome
from verlwatch.core.types import Message, Notification, Reason
from verlwatch.fields import ReceiverConfig
from verlwatch.shell.deliver import Deliver
from verlwatch.shell.notifiers import Notifier, PermanentError, TransientError, sample_message
from verlwatch.shell.store import Store

RECEIVERS = ("even", "odd")
PART = 40
"""So many messages are committed in a life at most."""


class Fate:
    """Counts steps and kills at one of them; with 0 it never does."""

    def __init__(self, dies_at: int) -> None:
        self.steps = 0
        self._dies_at = dies_at

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Sink(Notifier):
    """A receiver that keeps what it got on disk, and answers as the dice say."""

    TYPE: ClassVar[str] = "sink"
    RATE: ClassVar[tuple[int, float]] = (5, 60.0)
    Config: ClassVar[type[ReceiverConfig]] = ReceiverConfig

    def __init__(self, name: str, folder: Path, fate: Fate, dice: random.Random) -> None:
        self._name = name
        self._taken = os.open(folder / "taken", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._fate = fate
        self._dice = dice

    @staticmethod
    def render(message: Message, dedup_key: str) -> dict[str, Any]:
        told = list(message.evidence) if message.rule == "digest" else [f"{message.incident} {message.title}"]
        return {"id": dedup_key, "told": told, "late": "Told late" in message.summary}

    async def send(self, payload: dict[str, Any], dedup_key: str) -> None:
        self._fate.step()
        await asyncio.sleep(0)
        chance = self._dice.random()
        if chance < 0.15:
            raise TransientError("busy", self._dice.choice([None, 7.0, 90.0]))
        if chance < 0.20 and not dedup_key.startswith("digest"):
            self._note({"refused": dedup_key, **payload})
            raise PermanentError("never")
        self._note(payload)
        self._fate.step()
        if chance > 0.95:
            raise TransientError("the answer was lost")

    def _note(self, what: dict[str, Any]) -> None:
        os.write(self._taken, json.dumps({"receiver": self._name, **what}).encode() + b"\n")


def row(number: int) -> list[Notification]:
    """The number-th message, of one of a few incidents, for both receivers."""
    incident, turn = f"i{number % 7 + 7 * (number // 28)}", number // 7 % 4
    reason: Reason = "opened" if turn == 0 else "resolved" if turn == 3 else "updated"
    at = sample_message()
    message = Message(**{**_fields(at), "incident": incident, "reason": reason, "title": f"m{number}", "evidence": ()})
    return [notification(f"k{number}", incident, receiver=name, message=message, reason=reason) for name in RECEIVERS]


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


def stepping(store: Store, fate: Fate) -> None:
    """Makes each call of the store a step: before it, and after it was committed."""
    real = store._call

    async def call(*args: Any, **kwargs: Any) -> Any:
        fate.step()
        result = await real(*args, **kwargs)
        fate.step()
        return result

    store._call = call  # type: ignore[method-assign]


async def live(folder: Path, fate: Fate, seed: int, *, last: bool) -> None:
    """One life; the ``last`` ends when everything is delivered."""
    dice = random.Random(seed)
    clock = VirtualClock(1e9 + float((folder / "now").read_text() or 0.0))
    store = await Store.open(folder)
    stepping(store, fate)
    receivers = {name: Sink(name, folder, fate, dice) for name in RECEIVERS}
    deliver = Deliver(store, receivers, clock, max_backoff_s=30.0, collapse_after_s=300.0)
    async with asyncio.TaskGroup() as group:
        for loop in deliver.loops():
            group.create_task(loop)
        begin = int((folder / "committed").read_text() or 0)
        for number in range(max(0, begin - 5), begin + (0 if last else PART)):
            made = outcome(*row(number))
            await store.commit(made, clock.now())
            (folder / "committed").write_text(str(max(begin, number + 1)))
            deliver.notify(made)
            await advance(clock, folder, dice.uniform(0.0, 20.0))
        while last and any(one.pending for one in deliver.health()):
            await advance(clock, folder, 30.0)
        await deliver.drain(0.0)
    await store.close()


async def advance(clock: VirtualClock, folder: Path, seconds: float) -> None:
    await clock.advance(seconds, parked=len(RECEIVERS))
    (folder / "now").write_text(str(clock.now() - 1e9))


def child(folder: Path, seed: int, dies_at: int, *, last: bool = False) -> int:
    """Lives in a process of its own; its exit status."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    fate = Fate(dies_at)
    try:
        asyncio.run(live(folder, fate, seed, last=last))
    except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
        sys.stderr.write(f"{type(error).__name__}: {error} {getattr(error, 'exceptions', '')}\n")
        os._exit(1)
    os._exit(0)


def main(folder: Path, seed: int, lives: int) -> None:
    """Lives and dies, and at the end lives on until everything is delivered."""
    dice = random.Random(seed)
    for name in ("now", "committed"):
        (folder / name).write_text("")
    kills = 0
    for number in range(lives):
        status = child(folder, seed + number, dice.randint(1, 400))
        kills += os.WIFSIGNALED(status)
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
    status = child(folder, seed, 0, last=True)
    assert status == 0, status
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    import structlog

    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
