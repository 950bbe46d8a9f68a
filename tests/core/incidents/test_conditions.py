"""Incidents that word themselves: one for each subject, taken over by what is worse, ended with words of their own."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from verlwatch.core.incidents import Calm, Change, Conditions, Context, Moment, Policy, compose, news, reason
from verlwatch.core.types import Diagnosis, Incident, Notice, Reason, Severity


def found(rule: str = "stalled", subject: str = "run", severity: Severity = "warning", title: str = "") -> Diagnosis:
    return Diagnosis(
        rule, "r", subject, severity, 10, 10, 1.0, 0.0, 0.0, 0.0, f"it is {rule}", ("seen",),
        title=title or f"{rule} now", facts=(("Last step", "step 10"),),
    )  # fmt: skip


class Story:
    """Feeds one moment after another; who is to be told is told."""

    def __init__(self) -> None:
        self.conditions = Conditions()
        self.moment = Moment("r", 1, 10, 1000.0)
        self.told: list[tuple[Reason, str]] = []

    def __call__(self, *diagnoses: Diagnosis, after_s: float = 60.0, outcome: str = "", unknown: str = "") -> None:
        self.moment = replace(self.moment, now=self.moment.now + after_s)
        given = {"run": outcome} if outcome else {}
        self.tell(self.conditions.update(diagnoses, self.moment, given, {unknown} if unknown else ()))

    def tell(self, changes: tuple[Change, ...]) -> None:
        for _, incident in changes:
            why = reason(incident, Calm(), self.moment.now, Policy()).reason
            if why is not None:
                message = compose(incident, why, step=self.moment.step, now=self.moment.now, context=Context())
                self.told.append((why, message.title))
                last = Notice(self.moment.now, why, incident.severity, _lead(incident), 1.0, ("team",))
                self.conditions.note(replace(incident, told=(*incident.told, last), recorded=last))
        self.conditions.forget(self.moment.attempt, self.moment.step)

    def restart(self) -> None:
        self.conditions = Conditions.from_state(orjson.loads(orjson.dumps(self.conditions.state())))


def _lead(incident: Incident) -> tuple[str, str]:
    return incident.diagnoses[0].rule, incident.diagnoses[0].subject


def test_it_is_told_once_while_it_lasts() -> None:
    story = Story()
    for minutes in range(60):
        story(found(title=f"stuck for {minutes} min"))
    assert story.told == [("opened", "r: stuck for 0 min")]
    assert story.conditions["run"].diagnoses[0].title == "stuck for 59 min"


def test_what_is_worse_takes_the_same_incident_over() -> None:
    story = Story()
    story(found())
    first = story.conditions["run"].id
    story(found(severity="critical"))
    story(found("collective_timeout", severity="critical"))
    assert [why for why, _ in story.told] == ["opened", "escalated", "escalated"]
    assert story.conditions["run"].id == first


def test_of_two_rules_about_one_subject_the_later_one_counts() -> None:
    story = Story()
    story(found("killed", severity="critical"), found("host_oom", severity="critical"))
    assert story.told == [("opened", "r: host_oom now")]


def test_subjects_are_told_apart() -> None:
    story = Story()
    story(found(), found("blind", "logs"))
    story(found())
    assert story.told == [("opened", "r: stalled now"), ("opened", "r: blind now"), ("resolved", "r: over: blind now")]
    assert "run" in story.conditions


def test_it_does_not_become_less_severe_while_it_lasts() -> None:
    story = Story()
    story(found(severity="critical"))
    story(found(severity="warning"))
    assert story.conditions["run"].severity == "critical"


def test_how_it_ended_is_told_in_words_of_its_own() -> None:
    story = Story()
    story(found())
    story(outcome="goes on: step 11 came after 7 min")
    assert story.told[1:] == [("resolved", "r: goes on: step 11 came after 7 min")]


def test_what_nobody_sees_stays_as_it_was() -> None:
    story = Story()
    story(found())
    story(unknown="run")
    assert "run" in story.conditions
    story(found())
    assert [why for why, _ in story.told] == ["opened"]
    story()
    assert [why for why, _ in story.told] == ["opened", "resolved"]


def test_what_is_unknown_and_yet_found_is_taken() -> None:
    story = Story()
    story(found())
    story(found("killed", severity="critical"), unknown="run")
    assert story.told[1:] == [("escalated", "r: killed now")]


def test_what_comes_back_is_the_incident_of_before() -> None:
    story = Story()
    story(found())
    first = story.conditions["run"].id
    story(outcome="goes on")
    story(found())
    assert story.told[2:] == [("reopened", "r: again: stalled now")]
    assert story.conditions["run"].id == first
    assert story.conditions["run"].outcome == ""


def test_another_rule_later_is_another_incident() -> None:
    story = Story()
    story(found())
    first = story.conditions["run"].id
    story()
    story(found("killed", severity="critical"))
    assert story.told[2:] == [("opened", "r: killed now")]
    assert story.conditions["run"].id != first


def test_much_later_it_is_another_incident() -> None:
    story = Story()
    story(found())
    first = story.conditions["run"].id
    story()
    story.moment = replace(story.moment, step=100)
    story(found())
    assert story.told[2:] == [("opened", "r: stalled now")]
    assert story.conditions["run"].id != first


def test_what_is_accepted_is_not_told_until_it_is_another() -> None:
    story = Story()
    story(found())
    change = story.conditions.accept(story.conditions["run"].id, story.moment)
    assert change is not None
    story.tell((change,))
    story(found())
    story(unknown="run")
    story(found())
    assert [why for why, _ in story.told] == ["opened", "accepted"]
    story(found("killed", severity="critical"))
    assert [why for why, _ in story.told] == ["opened", "accepted", "opened"]


def test_nobody_accepts_what_is_not_open() -> None:
    assert Conditions().accept("f00d", Moment("r", 1, 10, 0.0)) is None


def test_an_announcement_is_told_once_and_is_over() -> None:
    story = Story()
    change = story.conditions.announce(found("finished", severity="info", title="finished: step 100"), story.moment)
    story.tell((change,))
    assert story.conditions.state()["lately"] == []
    story()
    assert story.told == [("finished", "r: finished: step 100")]
    assert list(story.conditions) == []


@pytest.mark.parametrize(
    ("closed_as", "title"),
    [
        ("run ended", "r: the run ended with this open: stalled now"),
        ("expired", "r: nothing more is heard, closed: stalled now"),
    ],
)
def test_what_is_open_at_the_end_ends_with_it(closed_as: str, title: str) -> None:
    story = Story()
    story(found())
    story.tell(story.conditions.finish(story.moment, "expired" if closed_as == "expired" else "run ended"))
    assert story.told[1:] == [(closed_as, title)]


def test_it_is_the_same_after_a_restart() -> None:
    story = Story()
    story(found(), found("blind", "logs"))
    story.restart()
    story(found(), found("blind", "logs"))
    story.restart()
    story(outcome="goes on")
    story.restart()
    story(found())
    assert [why for why, _ in story.told] == ["opened", "opened", "resolved", "resolved", "reopened"]


def test_an_end_that_could_not_be_told_yet_is_kept_until_it_is() -> None:
    story = Story()
    story(found())
    told = story.conditions["run"].told
    (change,) = story.conditions.update((), story.moment)
    story.conditions.forget(1, 1000)
    assert [one.after.id for one in story.conditions.waiting()] == [change.after.id]
    assert news(told[-1], change.after) == "resolved"
