"""A run that is watched while it prints: an engine with a clock, what it told, and what a store would have kept."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import orjson

from verlwatch.core.engine import Engine
from verlwatch.core.fleet import AgentReport
from verlwatch.core.life import Sight
from verlwatch.core.settings import Settings
from verlwatch.core.types import (
    NOBODY,
    Chunk,
    Cursor,
    Event,
    Extract,
    Message,
    Origin,
    Outcome,
    Snapshot,
    State,
    StepRow,
)

LOG = "train.log"
BEGAN_AT = 1_700_000_000.0


class Watched:
    """``now`` counts from 0; the engine's clock shows the time of day."""

    def __init__(self, settings: Settings | None = None, *, source: str = LOG) -> None:
        self.settings = settings or Settings(receivers=("team",))
        self.source = source
        self.engine = Engine(self.settings)
        self.now = 0.0
        self.messages: list[tuple[float, Message]] = []
        self._at = 0
        self._cursors: dict[str, Cursor] = {}
        self._states: dict[tuple[str, str], State] = {}
        self._steps: dict[tuple[str, int, int], StepRow] = {}

    @property
    def told(self) -> list[tuple[str, str, float]]:
        """Reason, rule and time of each message."""
        return [(message.reason, message.rule, round(at, 1)) for at, message in self.messages]

    @property
    def state(self) -> str:
        (run,) = self.engine.runs.values()
        return run.life.state

    # ------------------------------------------------------------------------------------------------ what happens
    def raw(self, *lines: str, history: bool = False) -> None:
        """Lines arrive; ``history``: they, and no others, were there before anybody watched."""
        data = "".join(f"{line}\n" for line in lines).encode()
        at, self._at = self._at, self._at + len(data)
        chunk = Chunk(self.source, 1, at, data, run="train", history_to=self._at if history else 0)
        self._take(self.engine.feed(chunk, self._clock()))

    def say(self, *lines: str) -> None:
        """Lines of the trainer arrive."""
        self.raw(*map(trainer, lines))

    def step(self, number: int, **seconds: float) -> None:
        """A step is printed; its phases took so long."""
        self.say(step_line(number, **seconds))

    def steps(self, first: int, last: int, **seconds: float) -> None:
        """Steps, each after the time that it takes."""
        for number in range(first, last + 1):
            self.wait(sum(({"gen": 40.0, "update_actor": 20.0} | seconds).values()))
            self.step(number, **seconds)

    def observe(self, name: str, /, **said: str | float) -> None:
        """An observer tells something."""
        kind = "slurm" if name == "job" else name
        event = Event(Origin(kind, 0, 0, NOBODY, kind), name, said, at=self._clock())
        self._take(self.engine.accept((Extract(kind, "train", (event,)),), self._clock()))

    def see(self, *, readable: bool = True, behind: bool = False, changed_ago_s: float = 0.0) -> None:
        """How the log stands."""
        changed_at = self._clock() - changed_ago_s
        why = "" if readable else "gone"
        self.engine.see([Sight(self.source, "train", readable, why, behind, changed_at)], self._clock())
        self._take(self.engine.tick(self._clock()))

    def wait(self, seconds: float) -> None:
        """Time passes; the engine has a turn whenever it wants one."""
        until = self.now + seconds
        for _ in range(1000):
            wanted = [at - BEGAN_AT for at in (self.engine.deadline(), self.engine.due()) if at is not None]
            if not any(at <= until for at in wanted):
                break
            self.now = max(self.now, min(wanted))
            self._take(self.engine.tick(self._clock()))
        else:
            raise AssertionError("the engine wants a turn again and again")
        self.now = until
        self._take(self.engine.tick(self._clock()))

    def restart(self) -> None:
        """The watcher ends and begins anew with what its store has."""
        self.engine = Engine(self.settings)
        kept = tuple(self._cursors.values()), tuple(self._states.values()), tuple(self._steps.values())
        self.engine.restore(deepcopy(Snapshot(*kept)))

    def hear(self, report: AgentReport) -> None:
        """An agent says how it stands."""
        self._take(self.engine.hear(report, self._clock()))

    # ------------------------------------------------------------------------------------------------ inside
    def _clock(self) -> float:
        return BEGAN_AT + self.now

    def _take(self, outcome: Outcome) -> None:
        self._cursors.update((cursor.source, cursor) for cursor in outcome.cursors)
        for state in outcome.states:
            data = orjson.loads(orjson.dumps(state.data))
            self._states[state.kind, state.key] = State(state.kind, state.key, state.version, data)
        self._steps.update(((row.run, row.attempt, row.step), row) for row in outcome.steps)
        self.messages += [(self.now, notification.message) for notification in outcome.notifications]


def trainer(line: str) -> str:
    """A line as the trainer prints it."""
    return f"(TaskRunner pid=7) {line}"


def step_line(number: int, **seconds: float) -> str:
    """A step of verl 0.6, validation and checkpoint beside it."""
    took = {"gen": 40.0, "update_actor": 20.0} | seconds
    apart = sum(took.get(name, 0.0) for name in ("testing", "save_checkpoint"))
    shown = took | {"step": sum(took.values()) - apart}
    timings = " - ".join(f"timing_s/{name}:{s!r}" for name, s in shown.items())
    return f"step:{number} - actor/lr:1e-06 - response/aborted_ratio:0.0 - {timings}"


def titles(watched: Watched) -> Sequence[str]:
    """What each message says, without the name of the run."""
    return [message.title.removeprefix("train: ") for _, message in watched.messages]
