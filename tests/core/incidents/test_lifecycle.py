"""What belongs together, what is new, what is over: told step by step."""

from __future__ import annotations

from dataclasses import replace

import orjson

from verlwatch.core.incidents import Change, Ending, Moment, OpenIncidents
from verlwatch.core.types import Diagnosis, Notice


def diagnosis(subject: str, *, onset: int, step: int, cost_s: float = 10.0, rule: str = "phase_shift") -> Diagnosis:
    return Diagnosis(
        rule=rule,
        run="r",
        subject=subject,
        severity="warning",
        onset=onset,
        step=step,
        ratio=1.5,
        before=20.0,
        after=30.0,
        cost_s=cost_s,
        summary="slower",
        evidence=("seen",),
    )


class Story:
    """Feeds one step after another and keeps the last changes."""

    def __init__(self) -> None:
        self.incidents = OpenIncidents()
        self.step = 100

    def __call__(self, *diagnoses: Diagnosis, **endings: Ending) -> tuple[Change, ...]:
        self.step += 1
        return self.incidents.update(diagnoses, endings, Moment("r", 1, self.step, float(self.step)))

    def states(self) -> list[tuple[str, str]]:
        return [(incident.diagnoses[0].subject, incident.state) for incident in self.incidents]


def test_a_phase_opens_at_once_and_closes_when_it_is_no_longer_said() -> None:
    story = Story()
    (opened,) = story(diagnosis("gen", onset=101, step=101))
    assert (opened.before, opened.after.state, opened.after.opened_step) == (None, "firing", 101)
    (closed,) = story(gen=Ending("resolved", 101))
    assert (closed.after.state, closed.after.closed_as, closed.after.closed_step) == ("closed", "resolved", 102)
    assert closed.after.last_step == 101
    assert story.states() == []


def test_phases_that_begin_together_are_one_incident_led_by_the_one_that_costs_most() -> None:
    story = Story()
    (change,) = story(
        diagnosis("ref", onset=101, step=101, cost_s=2.0), diagnosis("update_actor", onset=100, step=101, cost_s=9.0)
    )
    assert [d.subject for d in change.after.diagnoses] == ["update_actor", "ref"]


def test_a_phase_that_follows_within_three_steps_joins_the_incident() -> None:
    story = Story()
    gen = diagnosis("gen", onset=101, step=101)
    story(gen)
    story(gen)
    (change,) = story(gen, diagnosis("ref", onset=104, step=103))
    assert change.before is not None
    assert [d.subject for d in change.after.diagnoses] == ["gen", "ref"]


def test_phases_that_begin_far_apart_are_two_incidents() -> None:
    story = Story()
    gen = diagnosis("gen", onset=60, step=62)
    story(gen)
    story(gen, diagnosis("ref", onset=102, step=102))
    assert story.states() == [("gen", "firing"), ("ref", "firing")]


def test_a_slow_step_waits_for_the_phase_that_explains_it() -> None:
    story = Story()
    story(diagnosis("step", onset=101, step=101))
    assert story.states() == [("step", "pending")]
    story(diagnosis("gen", onset=101, step=102))
    assert story.states() == [("gen", "firing")]


def test_a_slow_step_that_nothing_explains_is_told_after_its_patience() -> None:
    story = Story()
    slow = diagnosis("step", onset=101, step=101)
    assert [story(slow) and story.states() for _ in range(4)] == [[("step", "pending")]] * 3 + [[("step", "firing")]]


def test_a_phase_takes_the_lead_of_a_slow_step_that_it_explains() -> None:
    story = Story()
    slow = diagnosis("step", onset=101, step=101)
    story(slow)
    story(slow, diagnosis("gen", onset=101, step=102))
    (incident,) = story.incidents
    assert [d.subject for d in incident.diagnoses] == ["gen", "step"]
    assert incident.state == "firing"


def test_the_fading_trace_of_a_closed_incident_opens_nothing() -> None:
    story = Story()
    story(diagnosis("gen", onset=101, step=101))
    trace = diagnosis("step", onset=101, step=103)
    for _ in range(10):
        story(trace, gen=Ending("resolved", 101))
    assert story.states() == []
    story()
    story(), story(), story()
    story(diagnosis("step", onset=116, step=116))
    assert story.states() == [("step", "pending")]


def test_the_end_of_the_run_closes_what_is_open() -> None:
    story = Story()
    story(diagnosis("gen", onset=101, step=101))
    (change,) = story.incidents.finish(Moment("r", 1, 300, 300.0))
    assert (change.after.closed_as, change.after.closed_step) == ("run ended", 300)
    assert story.states() == []


def test_the_id_does_not_depend_on_the_clock() -> None:
    def opened(now: float) -> str:
        (change,) = OpenIncidents().update(
            [diagnosis("gen", onset=5, step=5)], {}, Moment(run="r", attempt=1, step=5, now=now)
        )
        return change.after.id

    assert opened(1.0) == opened(2.0)


def test_lost_seconds_add_up_over_the_steps_of_an_incident() -> None:
    story = Story()
    slow = diagnosis("gen", onset=101, step=101, cost_s=10.0)
    for _ in range(3):
        story(slow)
    (incident,) = story.incidents
    assert incident.lost_s == 30.0


def test_steps_before_a_shift_was_recognised_count_as_lost_too() -> None:
    story = Story()
    story(diagnosis("gen", onset=99, step=101, cost_s=10.0))
    (incident,) = story.incidents
    assert incident.lost_s == 30.0


def test_a_step_that_two_sources_tell_costs_once() -> None:
    story = Story()
    slow = diagnosis("gen", onset=101, step=101, cost_s=10.0)
    story(slow)
    story.step -= 1
    story(slow)
    (incident,) = story.incidents
    assert incident.lost_s == 10.0


def test_what_comes_back_within_a_few_steps_is_the_same_incident() -> None:
    story = Story()
    (first,) = story(replace(diagnosis("gen", onset=101, step=101), ratio=3.0))
    story()
    story.step += 8
    (again,) = story(replace(diagnosis("gen", onset=111, step=111), ratio=2.0))
    assert (again.after.id, again.after.state, again.after.closed_as) == (first.after.id, "firing", None)
    assert again.after.lost_s == 20.0
    assert (again.after.episodes, again.after.worst_ratio) == (2, 2.0), "steps and ratio are those of the last episode"


def test_what_comes_back_later_is_another_incident() -> None:
    story = Story()
    (first,) = story(diagnosis("gen", onset=101, step=101))
    story()
    story.step += 10
    (again,) = story(diagnosis("gen", onset=113, step=113))
    assert again.after.id != first.after.id


def test_a_warning_that_lasts_and_costs_much_becomes_critical() -> None:
    story = Story()
    for step in range(101, 151):
        story(diagnosis("gen", onset=101, step=step, cost_s=80.0))
        (incident,) = story.incidents
        assert incident.severity == ("critical" if step == 150 else "warning")


def test_a_warning_that_lasts_and_costs_little_stays_one() -> None:
    story = Story()
    for step in range(101, 300):
        story(diagnosis("gen", onset=101, step=step, cost_s=1.0))
    (incident,) = story.incidents
    assert incident.severity == "warning"


def test_what_a_person_has_accepted_opens_nothing_until_it_grows() -> None:
    story = Story()
    (opened,) = story(diagnosis("gen", onset=101, step=101))
    change = story.incidents.accept(opened.after.id, Moment("r", 1, 101, 101.0))
    assert change is not None
    assert (change.after.state, change.after.closed_as) == ("closed", "accepted")
    for step in range(102, 130):
        story(diagnosis("gen", onset=101, step=step))
    assert story.states() == []
    story(replace(diagnosis("gen", onset=130, step=130), ratio=1.5 * 1.26))
    assert story.states() == [("gen", "firing")]


def test_what_was_accepted_and_is_over_is_told_when_it_comes_again() -> None:
    story = Story()
    (opened,) = story(diagnosis("gen", onset=101, step=101))
    assert story.incidents.accept("another", Moment("r", 1, 101, 101.0)) is None
    assert story.incidents.accept(opened.after.id, Moment("r", 1, 101, 101.0)) is not None
    story(diagnosis("gen", onset=101, step=102))
    story()
    story(diagnosis("gen", onset=104, step=104))
    assert story.states() == [("gen", "firing")]


def test_what_explains_every_phase_leads_whatever_came_first() -> None:
    story = Story()
    gen, ref = diagnosis("gen", onset=101, step=101, cost_s=9.0), diagnosis("ref", onset=102, step=102, cost_s=3.0)
    story(gen)
    every = diagnosis("all_phases", onset=101, step=102, cost_s=12.0, rule="all_slow")
    story(gen, ref, every)
    story(gen, ref, every)
    (incident,) = story.incidents
    assert [d.subject for d in incident.diagnoses] == ["all_phases", "gen", "ref"]
    assert incident.lost_s == (12.0 + 10.0) + 12.0  # what all lost since the onset counts, not what each did


def test_many_ranks_that_fail_are_one_diagnosis_that_names_them() -> None:
    story = Story()
    failed = [
        replace(
            diagnosis("device_oom", onset=101, step=101, rule="fault"),
            scope=(("rank", str(rank)), ("host", f"node-{rank // 8}")),
            evidence=(f"rank {rank}: out of memory",),
        )
        for rank in range(64)
    ]
    (change,) = story(*failed)
    (lead,) = change.after.diagnoses
    assert sum(label == "rank" for label, _ in lead.scope) == 64
    assert sum(label == "host" for label, _ in lead.scope) == 8
    assert (lead.cost_s, len(lead.evidence)) == (10.0, 8)


def test_state_round_trips_through_json() -> None:
    story = Story()
    story(diagnosis("gen", onset=101, step=101), diagnosis("ref", onset=60, step=101))
    story(diagnosis("gen", onset=101, step=101), diagnosis("step", onset=80, step=101))
    for incident in story.incidents:
        notice = Notice(5.0, "opened", "warning", ("phase_shift", "gen"), 1.5, ("team",))
        story.incidents.note(replace(incident, told=(notice,), recorded=notice, held="quiet hours"))
    again = OpenIncidents.from_state(orjson.loads(orjson.dumps(story.incidents.state())))
    assert again.state() == story.incidents.state()
    assert list(again) == list(story.incidents)
