"""The page a person sees."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest

from tests.shell.http.fake import NOW, hub_status, slow_run, status
from verlwatch.shell.http import page
from verlwatch.shell.http._html import duration, number, ratio, share, size, sparkline, tag
from verlwatch.status import (
    AgentStatus,
    ConfigStatus,
    IncidentStatus,
    PhaseStatus,
    ReceiverStatus,
    RunStatus,
    SourceStatus,
    Status,
    StoreStatus,
)

BERLIN = ZoneInfo("Europe/Berlin")


class Reading(HTMLParser):
    """What a browser would make of it: tags, attributes and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(markup)
        self.text = re.sub(r"\s+", " ", "\n".join(self.words).replace("\xa0", " "))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(now: Status, stalled: str | None = None) -> Reading:
    return Reading(page.render(now, BERLIN, stalled))


@pytest.mark.parametrize(
    "text",
    [
        "step 213 of 300",
        "2026-03-01 14:02:41 +0100 (41 s ago)",
        "attempt 2",
        "verl 0.4.1",
        "gen lasting change 83.2 s 53.4 s 1.56× 57 %",
        "adv 0.09 s 0.09 s 1.03× <1 %",
        "step lasting change 146 s 115 s 1.27× 100 %",
        "gen takes 1.56× as long since step 201 and adds 30 s to each step",
        "since step 201, noticed at step 205 · opened 2026-03-01 13:43:12 +0100 (20 min ago)",
        "53.4 s → 83.2 s (1.56×)",
        "resolved at step 155",
        "182 MB of 182 MB (100%) 7.29 kB, 0 s 1,204,882 (2 cut, 1 broken, 3 undecodable, 16 NUL)",
        "unreadable permission denied; let the user verlwatch runs as read it",
        "team-slack slack 6 0 0",
        "HTTP 503 from hooks.example.com",
        "running since 2026-02-28 12:00:18 +0100 (1 d 2 h ago)",
    ],
)
def test_the_page_says(text: str) -> None:
    joined = re.sub(r" ([.,)])", r"\1", read(status()).text)
    assert text in joined.replace("( ", "(")


@pytest.mark.parametrize(
    "text",
    [
        "Version 0.1.0, hub, running since",
        "Agents not heard for more than 60 s: node2, node3",
        "node1 2026-03-01 14:03:18 +0100 (4 s ago) 0.1.0 0.21 s ahead 0 s 0 4 2 repeated",
        "node2 silent 2026-03-01 13:50:48 +0100 (12 min ago) 0.2.0 90.4 s behind 5 min 1,204 9, 5 cannot be read: "
        "/data/run7/worker-0.log, /data/run7/worker-1.log, /data/run7/worker-2.log and 2 more "
        "40 samples thinned, 3 shipments lost, 1 requests refused",
        "node3 silent never – – – – – –",
        "6 requests with a token that is nobody's, or another agent's.",
    ],
)
def test_the_page_of_a_hub_says(text: str) -> None:
    assert text in re.sub(r" ([.,)])", r"\1", read(hub_status()).text).replace("( ", "(")


def test_silent_agents_are_marked_and_come_first() -> None:
    markup = page.render(hub_status())
    rows = re.findall(r'<tr( class="bad")?><td data-label="Agent"><b>(\w+)</b>', markup)
    assert rows == [(' class="bad"', "node2"), (' class="bad"', "node3"), ("", "node1")]


def test_an_agent_is_silent_after_a_minute_and_so_is_one_that_was_not_heard_in_the_first() -> None:
    started = replace(hub_status(), started_at=NOW - 60)
    on_time, late = AgentStatus(name="a", seen_at=NOW - 60), AgentStatus(name="a", seen_at=NOW - 61)
    assert [started.is_silent(one) for one in (on_time, late, AgentStatus(name="a"))] == [False, True, False]
    assert replace(started, now=NOW + 1).is_silent(AgentStatus(name="a"))


def test_a_large_fleet_of_agents_is_cut_and_whoever_is_silent_is_shown() -> None:
    fine = tuple(AgentStatus(name=f"n{i}", seen_at=NOW) for i in range(page.AGENTS_LIMIT + 6))
    shown = read(replace(hub_status(), agents=(*fine, AgentStatus(name="the-silent-one")))).text
    assert "And 7 more: see" in shown
    assert "the-silent-one silent" in shown


def test_whoever_has_no_agents_shows_none() -> None:
    shown = read(status()).text
    assert "Version 0.1.0, standalone, running" in shown
    assert "Agents" not in shown


def test_an_agent_shows_its_hub_and_does_not_look_as_if_no_run_were_in_trouble() -> None:
    hub = ReceiverStatus(name="hub", type="hub", pending=3, last_error="the hub answered 401")
    shown = read(Status(version="1", started_at=NOW, now=NOW, ready=True, role="agent", receivers=(hub,))).text
    assert "What this agent reads is judged by its hub" in shown
    assert "hub hub 0 3 0" in shown
    assert "Open incidents" not in shown
    assert "None yet" not in shown


def test_open_incidents_come_before_the_runs_and_closed_ones_after() -> None:
    text = read(status()).text
    order = [
        text.index(word)
        for word in ("Open incidents", "gen takes", "Runs", "Closed lately", "old_log_prob took", "Sources")
    ]
    assert order == sorted(order)


def test_an_incident_whose_values_are_not_known_shows_its_ratio_alone() -> None:
    closed = replace(status().incidents[1], before=None, after=None)
    shown = read(replace(status(), incidents=(closed,))).text
    assert "old_log_prob · 2.94×" in shown
    assert "→" not in shown


def test_the_title_counts_open_incidents() -> None:
    assert "<title>(1) verlwatch</title>" in page.render(status())
    assert "<title>verlwatch</title>" in page.render(replace(status(), incidents=()))


@pytest.mark.parametrize(
    "text",
    [
        "Not judging: judging has not turned for 95 s",
        "Not ready: source /home/ada/runs/llama-ppo/train.log",
        "Not ready: store: disk full",
        "Given up for oncall: 1 messages",
    ],
)
def test_a_watcher_in_trouble_says_so_first(text: str) -> None:
    now = replace(status(), not_ready=(*status().not_ready, "store: disk full"))
    shown = read(now, "judging has not turned for 95 s").text
    assert shown.index(text) < shown.index("Open incidents")


def test_a_watcher_without_trouble_shows_none() -> None:
    calm = replace(status(), ready=True, not_ready=(), receivers=())
    assert "trouble" not in page.render(calm)


def test_the_page_needs_no_script_and_nothing_inline_that_its_policy_forbids() -> None:
    reading = read(status())
    assert not {"script", "style", "img", "iframe", "form"} & set(reading.tags)
    names = {name for name, _ in reading.attributes}
    assert "style" not in names
    assert [name for name in names if name.startswith("on")] == []
    links = [target for name, target in reading.attributes if name in {"href", "src"}]
    assert set(links) == {"/static/style.css", "/api/v1/status", "/metrics"}
    of_a_hub = {target for name, target in read(hub_status()).attributes if name in {"href", "src"}}
    assert of_a_hub - set(links) == {"/api/v1/agents"}


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></table><h1>forged",
    "&lt;script&gt;",
    "\x1b[2J\u202e\u200b\x00\n",
    "caf\udce9",
    "x" * 10_000,
]


def everywhere(text: str) -> str:
    """The page of a status that has ``text`` wherever a text can be."""
    incident = IncidentStatus(
        id=text,
        run=text,
        rule=text,
        phase=text,
        state="firing",
        severity="warning",
        opened_step=1,
        onset_step=1,
        ratio=None,
        before=None,
        after=None,
        summary=text,
        opened_at=NOW,
    )
    now = Status(
        version=text,
        started_at=NOW,
        now=NOW,
        ready=False,
        not_ready=(text,),
        runs=(RunStatus(name=text, step=1, verl_version=text, phases=(PhaseStatus(name=text),)),),
        incidents=(incident, replace(incident, state="closed", closed_as="expired", closed_step=2)),
        sources=(SourceStatus(source=text, run=text, state=text, readable=False, error=text),),
        receivers=(ReceiverStatus(name=text, type=text, last_error=text, dead=1),),
        config=ConfigStatus(path=text, reload_ok=False, error=text),
        store=StoreStatus(ok=False, error=text),
        agents=(AgentStatus(name=text, version=text, seen_at=NOW, sources=1, unreadable=(text,)),),
        role="hub",
    )
    return page.render(now, BERLIN, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_wherever_it_comes_from(text: str) -> None:
    markup = everywhere(text)
    assert markup.encode().decode() == markup
    assert not {"\x1b", "\u202e", "\u200b", "\x00"} & set(markup)
    reading, plain = Reading(markup), Reading(everywhere("plain"))
    assert reading.tags == plain.tags
    assert [name for name, _ in reading.attributes] == [name for name, _ in plain.attributes]
    assert max(len(words) for words in reading.words) <= 400


def test_a_large_fleet_is_cut_and_the_page_says_so() -> None:
    finished = [replace(slow_run(), name=f"run-{i}", state="finished") for i in range(page.RUNS_LIMIT)]
    sources = [SourceStatus(source=f"/log/{i}", run="r", state="live", readable=True) for i in range(103)]
    running = replace(slow_run(), name="the-one-that-runs")
    troubled = replace(slow_run(), state="finished")
    shown = read(replace(status(), runs=(*finished, running, troubled), sources=tuple(sources))).text
    assert "And 2 more: see" in shown
    assert "And 3 more: see" in shown
    runs = shown[shown.index("Runs") :]
    assert runs.index(troubled.name) < runs.index("the-one-that-runs") < runs.index("run-0 ")


def test_a_watcher_that_has_seen_nothing_shows_that() -> None:
    shown = read(Status(version="1", started_at=NOW, now=NOW, ready=True)).text
    assert "None yet: no source has shown a step." in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0943, "0.09 s"),
        (9.996, "10.00 s"),
        (53.42, "53.4 s"),
        (12_345.6, "12,346 s"),
    ],
)
def test_seconds_show_as(value: float | None, shown: str) -> None:
    assert number(value, "s").replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0 s"),
        (-3, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (7_800, "2 h 10 min"),
        (93_784, "1 d 2 h"),
    ],
)
def test_durations_show_as(value: float | None, shown: str) -> None:
    assert duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (7_288, "7.29 kB"), (182_233_112, "182 MB"), (3e15, "3,000 TB")],
)
def test_sizes_show_as(value: float | None, shown: str) -> None:
    assert size(value).replace("\xa0", " ") == shown


def test_unknown_ratios_and_shares_show_as_a_dash() -> None:
    assert [ratio(None), ratio(float("inf")), share(None), share(0.0), share(0.001)] == [
        "–",
        "–",
        "–",
        "0\xa0%",
        "<1\xa0%",
    ]


def points(markup: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]
        for line in re.findall(r'points="([^"]+)"', markup)
    ]


def test_a_sparkline_goes_up_where_the_values_do_and_ends_in_a_dot() -> None:
    line, dot = points(sparkline([10.0, 20.0, 40.0], None))
    assert [x for x, _ in line] == [0.0, 60.0, 120.0]
    assert line[0][1] > line[1][1] > line[2][1] >= 0
    assert dot == [line[2], line[2]]


def test_a_sparkline_has_a_gap_where_a_value_is_unknown() -> None:
    first, second, _ = points(sparkline([1.0, 1.0, None, 1.0, float("nan")], None))
    assert [x for x, _ in first] == [0.0, 30.0]
    assert [x for x, _ in second] == [90.0, 90.0]


def test_a_sparkline_shows_the_baseline() -> None:
    assert "<line" in sparkline([1.0, 2.0], 1.5)
    assert "<line" not in sparkline([1.0, 2.0], None)


@pytest.mark.parametrize("values", [[], [None], [float("inf")]])
def test_nothing_known_is_no_sparkline(values: list[float | None]) -> None:
    assert sparkline(values, 1.0) == ""


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0], [5.0, 5.0], [-1.0, 1.0]])
def test_a_flat_or_single_value_is_drawn_inside_the_picture(values: list[float | None]) -> None:
    assert all(0 <= y <= 24 for line in points(sparkline(values, None)) for _, y in line)


def test_text_is_escaped_unless_it_is_markup_already() -> None:
    assert tag("p", "<b>", tag("b", "&"), title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;<b>&amp;</b></p>'


def test_a_run_whose_ranks_cannot_be_compared_says_what_to_switch_on() -> None:
    runs = [RunStatus(name=state, state=state, ranks_hint="Sample it.") for state in ("running", "finished")]
    assert read(replace(status(), runs=tuple(runs))).text.count("Sample it.") == 1
