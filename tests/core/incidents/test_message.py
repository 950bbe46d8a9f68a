"""What a message says: facts that are known, in words; what is not known is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verlwatch.core.incidents import Context, compose
from verlwatch.core.types import Diagnosis, Incident, Message, Notice

GEN = Diagnosis(
    "phase_shift", "qwen", "gen", "warning", 120, 122, 1.6, 40.0, 64.0, 24.0, "gen is slow",
    ("seen", "adds 24 s to a step of 100 s (+24%)"), ("look",),
)  # fmt: skip
OPEN = Incident("1a2b3c4d", "qwen", 1, "firing", "warning", (GEN,), 122, 1000.0, 1.6, lost_s=7200.0)
CONFIG: dict[str, str | int | float] = {
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "actor_rollout_ref.actor.use_dynamic_bsz": "true",
}
CONTEXT = Context(
    recent=(40.0, 41.0, 39.0, 40.0, 79.0, 80.0, 81.0),
    step_s=124.0,
    step_expected_s=100.0,
    gpus=16,
    config=CONFIG,
)


def said(incident: Incident = OPEN, context: Context = CONTEXT, reason: str = "opened", **more: float) -> Message:
    return compose(incident, reason, step=122, now=more.get("now", 1000.0), context=context)  # type: ignore[arg-type]


def facts(message: Message) -> dict[str, str]:
    return dict(message.facts)


def test_all_that_is_known_is_said() -> None:
    known = replace(OPEN, told=(Notice(1400.5, "opened", "warning", ("phase_shift", "gen"), 1.6),))
    assert facts(said(known, now=1499.0))["Since step"] == "120 (first told 98 s ago)"
    assert facts(said(known, now=5000.0)) == {
        "Since step": "120 (first told 60 min ago)",
        "At step": "122",
        "Ratio at equal work": "×1.60 (×2.00 in seconds)",
        "Baseline": "40 s",
        "New level": "64 s",
        "Adds to the step": "24 s (24% of a step), all of what the step lost",
        "Lost so far": "2.0 h, 32 GPU-hours; 74 GPU-hours a day if it goes on",
        "Likely cause": "something in gen itself (possible: other phases are as before)",
        "Configured": "rollout.gpu_memory_utilization = 0.6",
    }


def test_what_is_not_known_is_left_out() -> None:
    assert facts(said(context=Context())) == {
        "Since step": "120",
        "At step": "122",
        "Ratio at equal work": "×1.60",
        "Baseline": "40 s",
        "New level": "64 s",
        "Lost so far": "2.0 h",
        "Likely cause": "something in gen itself (possible: other phases are as before)",
    }


def test_what_more_work_adds_is_kept_apart_from_what_is_wrong() -> None:
    usual = CONTEXT.recent[0]
    more = facts(said(context=replace(CONTEXT, expected=1.25 * usual)))["More work adds"]
    assert more == f"{0.25 * usual:.3g} s besides, which is no fault"
    assert "More work adds" not in facts(said(context=replace(CONTEXT, expected=1.02 * usual)))


def test_a_part_of_the_slowdown_is_given_as_that() -> None:
    context = replace(CONTEXT, step_s=148.0)
    assert facts(said(context=context))["Adds to the step"] == "24 s (24% of a step), 50% of what the step lost"


def test_what_a_fact_says_the_evidence_does_not_repeat() -> None:
    assert said().evidence == ("seen",)
    assert len(said(context=Context()).evidence) == 2


def test_two_phases_are_thought_to_share_a_cause() -> None:
    both = replace(OPEN, diagnoses=(GEN, replace(GEN, subject="ref")))
    assert (
        facts(said(both))["Likely cause"] == "something that gen and ref share (possible: other phases are as before)"
    )


def test_many_ranks_are_named_in_spans() -> None:
    ranks = (("rank", str(rank)) for rank in (*range(48), 50))
    scope = (*ranks, ("host", "node-3"), ("host", "node-4"))
    failed = replace(OPEN, diagnoses=(replace(GEN, rule="fault", subject="device_oom", scope=scope),))
    assert facts(said(failed))["Where"] == "ranks 0-47, 50 (49) on node-3, node-4"


def test_a_message_has_at_most_ten_facts() -> None:
    scope = (("rank", "3"),)
    assert len(said(replace(OPEN, diagnoses=(replace(GEN, scope=scope),)), now=9e9).facts) == 10


def test_the_title_alone_tells_what_it_is() -> None:
    every = replace(GEN, rule="all_slow", subject="all_phases", before=100.0, after=160.0)
    spike = replace(GEN, rule="phase_spike")
    titles = {
        ("opened", GEN): "qwen: gen is ×1.60 since step 120: 64 s instead of 40 s",
        ("reopened", GEN): "qwen: gen is again ×1.60 since step 120: 64 s instead of 40 s",
        ("repeated", GEN): "qwen: gen is still ×1.60 since step 120: 64 s instead of 40 s",
        ("reopened", spike): "qwen: gen again took ×1.60 at step 122: 64 s instead of 40 s",
        ("opened", every): "qwen: every phase is ×1.60 since step 120: 160 s instead of 100 s",
        ("flapping", GEN): "qwen: gen comes and goes, ×1.60 at step 122; no more of it for an hour",
    }
    for (reason, lead), title in titles.items():
        assert said(replace(OPEN, diagnoses=(lead,)), reason=reason).title == title


def test_how_to_hear_no_more_of_it_can_be_pasted_into_a_shell() -> None:
    *_, how = said(replace(OPEN, run="out/a+b=c@d,e%f:g-1.log")).advice
    assert how == (
        "Known? verlwatch silence add --run=out/a+b=c@d,e%f:g-1.log --phase=gen --for=2h, "
        "or until it grows: verlwatch accept 1a2b3c4d"
    )
    assert said(replace(OPEN, state="closed", closed_as="resolved"), reason="resolved").advice == ()


@pytest.mark.parametrize(
    "run", ["x`;touch PWNED;`y.log", "it's", "$HOME", "-rf", "a b", "a*", "a\\b", "a\nb", "é", "~root", "a;b", ""]
)
def test_a_name_that_means_anything_to_a_shell_stands_in_no_command(run: str) -> None:
    for one in (replace(OPEN, run=run), replace(OPEN, diagnoses=(replace(GEN, subject=run),))):
        *_, how = said(one).advice
        assert how == "Known? To hear no more of it until it grows: verlwatch accept 1a2b3c4d"


def test_what_a_person_accepted_is_not_told_as_a_new_baseline() -> None:
    ended = replace(OPEN, state="closed", closed_as="accepted", last_step=140)
    assert "this is the baseline now" in said(ended, reason="accepted").title
    message = said(replace(ended, by_hand=True), reason="accepted")
    grows = "accepted by a person; not told again unless it grows by 25%"
    assert message.title == f"qwen: gen at 64 s instead of 40 s: {grows}"
    assert "Accepted by a person after 21 steps" in message.summary
    assert facts(message)["Accepted by"] == "a person"


def test_what_came_back_says_in_how_many_episodes_it_cost_so_much() -> None:
    ended = replace(OPEN, state="closed", closed_as="resolved", last_step=140, episodes=2)
    assert facts(said(ended, reason="resolved"))["Cost"] == "2.0 h in 2 episodes"
    assert said(ended, reason="resolved").summary.endswith("it cost 2.0 h in 2 episodes.")


def test_the_end_tells_what_it_cost() -> None:
    ended = replace(OPEN, state="closed", closed_as="resolved", last_step=140)
    told = facts(said(ended, reason="resolved"))
    assert (told["Steps"], told["Cost"], told["GPU-hours lost"]) == ("120 to 140", "2.0 h", "32")
