"""What a run tells of its incidents, of all kinds, and what keeps it from telling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from verlwatch.core import phases
from verlwatch.core._attempts import Attempts
from verlwatch.core._hardware import Hardware
from verlwatch.core._judged import JudgedSeries
from verlwatch.core._telling import Told, calm, tell
from verlwatch.core.incidents import Calm, Change, Conditions, Context, Moment, Mute, OpenIncidents, Silences
from verlwatch.core.life import Life
from verlwatch.core.phases import STEP
from verlwatch.core.settings import Settings
from verlwatch.core.types import Incident
from verlwatch.core.work import Work, gpus

Book = OpenIncidents | Conditions
OF_ONE_STEP = frozenset({"phase_spike", "early_slow", "limit"})
"""Rules about one slow step: where people know it as a stall already, it is no second message."""


class Voice:
    """The part of a `Run` that speaks; a run has all of these."""

    name: str
    settings: Settings
    silences: Silences
    attempts: Attempts
    incidents: OpenIncidents
    findings: Conditions
    life: Life
    hardware: Hardware
    judged: JudgedSeries
    config: Work
    step: int
    mute: Mute | None
    due: float | None

    def live(self, now: float, told: Told, *, final: bool = False) -> None:
        """Lets the life of the run be judged; see `Run.live`."""

    def look(self, now: float, told: Told) -> bool:
        """Lets time pass: what was held back may be told now.  Whether anything was."""
        before = len(told.notifications), len(told.transitions), self.life.state
        moment = Moment(self.name, self.attempts.current, self.step, now, self.mute)
        self._tell(self.incidents.waiting(), moment, told)
        self._tell(self.findings.waiting(), moment, told, self.findings)
        cards = self.hardware.conditions
        found = self._guarded(
            "GPUs", lambda: self.hardware.look(moment) if self.hardware.turn(now) else cards.waiting()
        )
        self._tell(found, moment, told, cards)
        if self.due is not None and now >= self.due:
            self.live(now, told)
        else:
            self._tell(self.life.conditions.waiting(), moment, told, self.life.conditions)
        return (len(told.notifications), len(told.transitions), self.life.state) != before

    def accept(self, incident: str, now: float, told: Told) -> bool:
        """A person takes the level of an open incident for the normal one; False if none has that id."""
        moment = Moment(self.name, self.attempts.current, self.step, now)
        for book in self._books():
            change = book.accept(incident, moment)
            if change is not None:
                self._tell((change,), moment, told, book)
                return True
        return False

    def open_incidents(self) -> Iterator[Incident]:
        """All that are open."""
        for book in self._books():
            yield from book

    def _guarded(self, what: str, ask: Callable[[], tuple[Change, ...]]) -> tuple[Change, ...]:
        """What ``ask`` answers; nothing, and why it is shown, where it raises: it is asked again at the next turn."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the guarded border around a run's judgement
            self.judged.quarantined[what] = repr(error)[:300]
            return ()

    def _books(self) -> tuple[Book, ...]:
        return self.incidents, self.findings, self.life.conditions, self.hardware.conditions

    def _tell(self, changes: Iterable[Change], moment: Moment, told: Told, book: Book | None = None) -> None:
        book = book or self.incidents
        for incident in tell(changes, moment, partial(self._calm, moment), self._context, self.settings, told):
            book.note(incident)

    def _calm(self, moment: Moment, incident: Incident) -> Calm:
        """A step that validates, saves or follows a resume opens nothing by itself: what lasts is told after it."""
        lead = incident.diagnoses[0]
        if lead.rule in OF_ONE_STEP and incident.opened_step in self.life.late_steps:
            return calm(incident, moment.now, self.settings, self.silences)._replace(mute="told as a stall")
        is_apart = phases.is_apart(lead.subject) or bool(lead.title)
        begins_here = moment.mute == "resume" or incident.opened_step == moment.step
        mute = moment.mute if begins_here and not is_apart else None
        return calm(incident, moment.now, self.settings, self.silences, mute)

    def _context(self, incident: Incident) -> Context:
        judged = self.judged
        if incident.diagnoses[0].title:
            return Context(link=self.settings.link)
        subject = incident.diagnoses[0].subject
        last: Sequence[float] = judged.recent.get(STEP) or ()
        recent: Sequence[float] = judged.recent.get(subject) or last
        return Context(
            recent=tuple(recent),
            expected=judged.expected.get(subject),
            step_s=last[-1] if last else None,
            step_expected_s=judged.expected.get(STEP),
            gpus=gpus(self.config),
            config=self.config,
            link=self.settings.link,
        )
