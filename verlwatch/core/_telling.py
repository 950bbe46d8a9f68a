"""Changes of incidents become what history keeps and what people are told.

History is told at once of whatever happens.  People are told what `reason` lets through; it is asked again with every
step and with every turn of the clock, until there is nothing left to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from verlwatch.core.incidents import (
    ENDS,
    MUTE_S,
    NO_NEWS,
    Calm,
    Change,
    Context,
    Moment,
    Mute,
    Silences,
    any_holds,
    compose,
    news,
    reason,
    receivers,
)
from verlwatch.core.settings import Settings
from verlwatch.core.types import EventName, GpuRow, Incident, Message, Notice, Notification, Reason, StepRow, Transition

_EVENT: dict[Reason, EventName] = {
    "opened": "opened",
    "reopened": "opened",
    "escalated": "updated",
    "updated": "updated",
    "finished": "finished",
    **dict.fromkeys(ENDS, "closed"),
}


@dataclass(slots=True)
class Told:
    """What judging added: rows, transitions and notifications for the outcome.

    ``history`` says that the records now taken were there before anybody watched.
    """

    steps: list[StepRow] = field(default_factory=list)
    gpus: list[GpuRow] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    history: bool = False


def tell(
    changes: Iterable[Change],
    moment: Moment,
    calm: Callable[[Incident], Calm],
    context: Callable[[Incident], Context],
    settings: Settings,
    told: Told,
) -> Iterator[Incident]:
    """Says what is worth saying of each incident; gives each back as it remembers that.

    History, as in a log that was there before anybody watched, opens nothing: what still holds at the first new step is
    told then.
    """
    for _, incident in changes:
        if told.history and incident.recorded is None:
            continue
        after = record(incident, moment, told)
        verdict = reason(after, calm(after), moment.now, settings.policy)
        if verdict.reason is None:
            held = "" if verdict.held in NO_NEWS else str(verdict)
            yield after if after.held == held else replace(after, held=held)
            continue
        message = compose(after, verdict.reason, step=moment.step, now=moment.now, context=context(after))
        yield notify(after, message, settings, told)


def record(incident: Incident, moment: Moment, told: Told) -> Incident:
    """Tells history what is new of an incident, held back or not."""
    what = news(incident.recorded, incident)
    if what is None:
        return incident
    told.transitions.append(_transition(incident, _EVENT[what], moment.step))
    return replace(incident, recorded=_notice(incident, what, moment.now))


def notify(incident: Incident, message: Message, settings: Settings, told: Told) -> Incident:
    """Queues a message for all whom it concerns; the incident as it remembers that."""
    names = receivers(settings.routes, settings.receivers, incident)
    key = f"{incident.id}-{len(incident.told) + 1}"
    told.notifications += [Notification(key, incident.id, name, message.reason, message) for name in names]
    notice = _notice(incident, message.reason, message.at)._replace(receivers=names)
    return replace(incident, told=(*incident.told, notice), held="")


def calm(incident: Incident, now: float, settings: Settings, silences: Silences, mute: Mute | None = None) -> Calm:
    """What keeps people from being told of ``incident`` at ``now``."""
    silence = silences.covering(incident, now)
    return Calm(
        silence=silence.id if silence else "",
        maintenance=any(one.covers(incident) and one.holds(now, settings.zone) for one in settings.maintenance),
        quiet_hours=any_holds(settings.quiet_hours, now, settings.zone),
        mute=mute if now - incident.opened_at < MUTE_S else None,
    )


def _notice(incident: Incident, why: Reason, now: float) -> Notice:
    lead = incident.diagnoses[0]
    return Notice(now, why, incident.severity, (lead.rule, lead.subject), lead.ratio)


def _transition(incident: Incident, event: EventName, step: int) -> Transition:
    lead = incident.diagnoses[0]
    return Transition(
        event=event,
        incident=incident.id,
        rule=lead.rule,
        run=incident.run,
        attempt=incident.attempt,
        phase=lead.subject,
        onset_step=lead.onset,
        step=step,
        ratio=round(lead.ratio, 4),
        severity=incident.severity,
        summary=lead.summary,
        opened_step=incident.opened_step,
        before=lead.before,
        after=lead.after,
        closed_as=incident.closed_as,
        last_step=incident.last_step,
        title=incident.outcome or lead.title,
    )
