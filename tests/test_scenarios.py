"""Stories of runs (tests/scenarios): exactly what is expected is told, when it is, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.scenarios import write
from verlwatch import timeline
from verlwatch.cli import main
from verlwatch.core.engine import Engine
from verlwatch.core.settings import Patience, RunLimits, Settings
from verlwatch.core.types import Incident, Message, Transition

SCENARIOS = sorted(path.parent for path in write.HERE.glob("*/expected.yaml"))
NEAR_S = 0.5
"""A time that is given as one number is meant to so many seconds."""
EVENT = {"opened": "opened", "reopened": "opened", "escalated": "updated", "updated": "updated", "finished": "finished"}


class Happened(NamedTuple):
    """A change of an incident, when, the message about it if people got one, and the incident itself."""

    transition: Transition
    at: float
    message: Message | None
    incident: Incident | None


class Story:
    """What came of a scenario."""

    def __init__(self, folder: Path) -> None:
        self.expected: Mapping[str, Any] = yaml.safe_load((folder / "expected.yaml").read_text())
        self.logs = sorted(folder.glob("*.log"))
        self.engine = Engine(settings(self.expected.get("settings", {})))
        self.happened = list(self._happen(folder))

    def _happen(self, folder: Path) -> Iterator[Happened]:
        runs = self.expected.get("runs", {log.name: "train" for log in self.logs})
        for outcome, now in timeline.replay(self.engine, self.logs, runs, timeline.read(folder / "timeline")):
            messages = [notification.message for notification in outcome.notifications]
            known = {one.id: one for run in self.engine.runs.values() for one in run.open_incidents()}
            for transition in outcome.transitions:
                about = (m for m in messages if is_about(m, transition))
                message = next(about, None)
                yield Happened(transition, now, message, known.get(transition.incident))
                messages = [other for other in messages if other is not message]
            assert messages == [], "told of what history does not know"


def settings(given: Mapping[str, Any]) -> Settings:
    limits = RunLimits(host_memory_gb=given.get("host_memory_gb"))
    return Settings(receivers=("team",), patience=Patience(**given.get("patience", {})), runs=(limits,))


def is_about(message: Message, transition: Transition) -> bool:
    """What history knows already may be the first that people hear of an incident."""
    event = EVENT.get(message.reason, "closed")
    fits = event == transition.event or (event, transition.event) == ("opened", "updated")
    return message.incident == transition.incident and fits


def differences(happened: Happened, expected: Mapping[str, Any]) -> Iterator[str]:
    """What is not as expected, in words."""
    transition, message = happened.transition, happened.message
    for name in ("event", "rule", "severity", "run", "step", "closed_as"):
        if name in expected and getattr(transition, name) != expected[name]:
            yield f"{name} is {getattr(transition, name)}, not {expected[name]}"
    at = expected["at"]
    first, last = at if isinstance(at, list) else (at - NEAR_S, at + NEAR_S)
    if not first <= happened.at <= last:
        yield f"at {happened.at:g} s, not {at}"
    if (message is None) != ("held" in expected):
        yield "nobody is told" if message is None else f"told: {message.title}"
    if "held" in expected and happened.incident is not None and happened.incident.held != expected["held"]:
        yield f"held back for {happened.incident.held!r}, not {expected['held']!r}"
    title = message.title.removeprefix(f"{message.run}: ") if message else transition.title or transition.summary
    if not re.fullmatch(expected["title"], title):
        yield f"title is {title!r}"
    for label, value in expected.get("facts", {}).items():
        shown = dict(message.facts).get(label, "") if message else ""
        if not re.search(value, shown):
            yield f"{label} is {shown!r}"
    said = "\n".join(message.evidence) if message else ""
    if not all(re.search(line, said) for line in expected.get("evidence", ())):
        yield f"evidence is {said!r}"


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_what_is_told_is_what_is_expected(folder: Path) -> None:
    story = Story(folder)
    pairs = zip(story.happened, story.expected["told"], strict=False)
    assert [list(differences(*pair)) for pair in pairs if list(differences(*pair))] == []
    told, expected = len(story.happened), len(story.expected["told"])
    assert told == expected, [f"{one.at:g} {one.transition.rule} {one.transition.event}" for one in story.happened]


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_a_run_goes_through_the_states_that_are_expected(folder: Path) -> None:
    story = Story(folder)
    assert {
        name: [change.state for change in run.life.past] for name, run in story.engine.runs.items()
    } == story.expected["states"]


def test_every_scenario_is_written_and_has_its_expectation() -> None:
    assert {folder.name for folder in SCENARIOS} == write.SCENES.keys()


@pytest.mark.parametrize("name", write.SCENES)
def test_the_files_are_what_the_generator_writes(name: str) -> None:
    folder = write.HERE / name
    written = dict(write.SCENES[name]().files())
    assert {path.name: path.read_text() for path in folder.iterdir() if path.name != "expected.yaml"} == written


def test_no_line_is_lost_to_a_fault_of_the_watcher() -> None:
    quarantined = {
        folder.name: {**run.judged.quarantined, **run.left_out}
        for folder in SCENARIOS
        for run in Story(folder).engine.runs.values()
    }
    assert not any(quarantined.values()), quarantined


def test_the_command_replays_with_the_times_of_arrival(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write.HERE / "nccl-timeout-after-a-stall"
    arguments = ["replay", "--json", "--timeline", str(folder / "timeline"), str(folder / "run.log")]
    assert main(arguments) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["event"], one["rule"]) for one in told] == [
        ("opened", "stalled"), ("updated", "stalled"), ("updated", "collective_timeout"),
    ]  # fmt: skip
    assert len({one["incident"] for one in told}) == 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("soon run.log 1\n", "timeline:1: a row is SECONDS NAME WHAT"),
        ("5 run.log 1\n4 run.log 2\n", "timeline:2: 4 s: rows stand in the order of time"),
        ("5 other.log 1\n", "other.log at 5 s: neither a log that was given, nor an observer, nor `end`"),
        ("5 run.log 9000\n", "run.log at 5 s: '9000' is no number of its"),
        ("5 process {]\n", "process at 5 s: "),
        ("5 process [1, 2]\n", "process at 5 s: the attributes are an object of texts and numbers"),
        ('5 process {"pid": [1]}\n', "process at 5 s: the attributes are an object of texts and numbers"),
        ("5 run.log ²\n", "run.log at 5 s: '²' is no number of its"),
        ("nan run.log 1\n", "timeline:1: nan s: rows stand in the order of time"),
    ],
)
def test_a_timeline_that_cannot_be_used_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str, says: str
) -> None:
    (tmp_path / "timeline").write_text(rows)
    log = write.HERE / "silence" / "run.log"
    assert main(["replay", "--timeline", str(tmp_path / "timeline"), str(log)]) == 1
    assert says in capsys.readouterr().err
