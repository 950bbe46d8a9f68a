"""The Slurm job of each run: how it stands, until when it may run, and how it ended.

Slurm is asked every 30 s; what changed is told.  A job that ends and is queued again goes on being asked for; one that
Slurm has forgotten is not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from verlwatch.config import Config
from verlwatch.core.types import NOBODY, Event, Extract, Origin, Severity
from verlwatch.shell import slurm
from verlwatch.shell._worker import Worker
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.printable import shortened
from verlwatch.shell.slurm import Job, SlurmError

EVERY_S = 30.0
RETRY_S = 1.0
"""What the inbox had no room for is offered again."""
PATIENCE_S = 2.0
"""An answer that takes longer is taken when it comes."""
_SEVERITY: dict[str, Severity] = {
    "COMPLETED": "info",
    "CANCELLED": "warning",
    "PREEMPTED": "warning",
    "REVOKED": "warning",
}


class Slurm:
    """Asks for the job of each run; see the module."""

    def __init__(self, inbox: Inbox, clock: Clock, config: Config, ask: Callable[[str], Job] = slurm.ask) -> None:
        self._inbox = inbox
        self._clock = clock
        self._ask = ask
        self._jobs = _jobs(config)
        self._known: dict[tuple[str, str], Job] = {}
        self._forgotten: set[tuple[str, str]] = set()
        self._troubles: dict[tuple[str, str], str] = {}
        self._answers: deque[tuple[str, str, Job | SlurmError]] = deque()
        self._told: deque[Extract] = deque(maxlen=256)
        self._asking = False
        self._ask_at = 0.0
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Asks again and again, until it is cancelled."""
        thread = Worker("slurm")
        try:
            while True:
                self._wake.clear()
                await self._turn(thread)
                await self._clock.wait(self._wake, self._due_at())
        finally:
            thread.end()

    def reconfigure(self, config: Config) -> None:
        """Takes up another configuration, from the next question on."""
        self._jobs = _jobs(config)
        kept = set(self._jobs.items())
        self._known = {key: job for key, job in self._known.items() if key in kept}
        self._forgotten &= kept
        self._troubles = {key: text for key, text in self._troubles.items() if key in kept}
        self._ask_at = 0.0
        self._wake.set()

    def notices(self) -> Iterable[str]:
        """What Slurm does not tell, and why."""
        yield from dict.fromkeys(self._troubles.values())

    def _due_at(self) -> float | None:
        """When there is something to do again; None: never, by itself."""
        if self._asking or self._answers or self._told:
            return self._clock.now() + RETRY_S
        return self._ask_at if self._wanted() else None

    def _wanted(self) -> list[tuple[str, str]]:
        """The runs and jobs to be asked for."""
        return [key for key in self._jobs.items() if key not in self._forgotten]

    async def _turn(self, thread: Worker) -> None:
        now = self._clock.now()
        wanted = self._wanted()
        if wanted and not self._asking and (now >= self._ask_at or now < self._ask_at - EVERY_S):
            self._asking, self._ask_at = True, now + EVERY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await thread.call(lambda: self._ask_all(wanted))
        while self._answers:
            self._take(*self._answers.popleft())
        while self._told and self._inbox.offer(self._told[0]):
            self._told.popleft()

    def _ask_all(self, wanted: list[tuple[str, str]]) -> None:
        """In the thread: a question may take as long as Slurm likes."""
        try:
            for run, job in wanted:
                try:
                    self._answers.append((run, job, self._ask(job)))
                except SlurmError as error:
                    self._answers.append((run, job, error))
        finally:
            self._asking = False

    def _take(self, run: str, asked: str, answer: Job | SlurmError) -> None:
        key = (run, asked)
        if self._jobs.get(run) != asked:
            return
        if isinstance(answer, SlurmError):
            if answer.unknown:
                self._forgotten.add(key)
            if not (answer.unknown and key in self._known and self._known[key].is_over):
                self._troubles[key] = str(answer)
            return
        self._troubles.pop(key, None)
        if self._known.get(key) != answer:
            self._known[key] = answer
            self._told.append(Extract("slurm", run, (_event(answer, self._clock.now()),)))


def _jobs(config: Config) -> dict[str, str]:
    return {run.name: run.slurm_job for run in config.runs if run.slurm_job}


def _event(job: Job, now: float) -> Event:
    """``exit`` (as of a process), ``exit_code`` and ``signal`` are of one that is over; what is unknown is left out."""
    attributes: dict[str, str | int | float] = {"job": job.job, "state": job.state, "restarts": job.restarts}
    texts = {"name": job.name, "reason": job.reason, "nodes": job.nodes, "batch_host": job.batch_host}
    attributes |= {key: shortened(text) for key, text in texts.items() if text}
    times = {"time_limit_s": job.time_limit_s, "started_at": job.started_at, "ends_at": job.ends_at}
    attributes |= {key: number for key, number in times.items() if number is not None}
    severity: Severity = "info"
    if job.is_over:
        how = f"signal {job.signal}" if job.signal else f"code {job.exit_code}"
        attributes |= {"exit": how, "exit_code": job.exit_code, "signal": job.signal}
        severity = _SEVERITY.get(job.state, "critical")
    return Event(Origin("slurm", 0, 0, NOBODY, "slurm"), "job", attributes, severity, at=now)
