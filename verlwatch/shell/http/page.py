"""`/`: the status for a person, made on the server, without JavaScript; the page asks again every 15 seconds.

What needs a person comes first: what is wrong with verlwatch itself, then open incidents, then the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from verlwatch.core.metrics import MEASURES
from verlwatch.core.phases import JUDGED, STEP
from verlwatch.shell.http._gpus import cards
from verlwatch.shell.http._html import (
    Html,
    clock,
    duration,
    escaped,
    joined,
    moment,
    number,
    ratio,
    share,
    size,
    sparkline,
    table,
    tag,
)
from verlwatch.shell.printable import shortened
from verlwatch.status import (
    SILENT_S,
    AgentStatus,
    IncidentStatus,
    PhaseStatus,
    ReceiverStatus,
    RunStatus,
    SourceStatus,
    Status,
)

REFRESH_S = 15
RUNS_LIMIT, INCIDENTS_LIMIT, SOURCES_LIMIT, AGENTS_LIMIT = 20, 50, 100, 100
"""What the page shows at most, so that making it never holds the event loop for long (these: about 60 ms).

A larger fleet is for /api/v1/status and Prometheus.
"""

_STATE_WORDS = {
    "warm-up": "warming up", "slow": "slow step", "shift": "lasting change", "sliding": "getting slower",
    "noisy": "swings more",
}  # fmt: skip
_NAMED, _NAME_LIMIT = 3, 80
"""So many silent agents, and files that an agent cannot read, are named, each with so many characters."""
_JUDGED_ELSEWHERE = tag("p", "What this agent reads is judged by its hub, whose page shows runs and incidents.")
_RUN_ORDER = {"crashed": 0, "stalled": 1, "silent": 2, "ended early": 3, "unknown": 5, "finished": 6}
"""Others stand between: those that run."""


def render(status: Status, zone: tzinfo | None = None, stalled: str | None = None) -> str:
    """The whole page; times are in ``zone`` (None: the host's), ``stalled`` is what does not turn, if anything."""
    open_now = [one for one in status.incidents if one.state != "closed"]
    body = joined(
        _header(status, zone),
        _trouble(status, stalled),
        _judged(status, open_now, zone) if status.role != "agent" else _JUDGED_ELSEWHERE,
        _section("Agents", _agents(status, zone)),
        _section("Sources", _sources(status.sources, status.now, zone)),
        _section("Receivers", _receivers(status.receivers, status.now, zone)),
        tag("footer", "For programs: ", _links(status)),
    )
    title = f"({len(open_now)}) verlwatch" if open_now else "verlwatch"
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=REFRESH_S),
        tag("title", title),
        tag("link", rel="stylesheet", href="/static/style.css"),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}\n"


def _judged(status: Status, open_now: Sequence[IncidentStatus], zone: tzinfo | None) -> Html:
    closed = [one for one in status.incidents if one.state == "closed"]
    return joined(
        _section("Open incidents", _incidents(open_now, status.now, zone) or tag("p", "None.", class_="quiet")),
        _section("Runs", _runs(status, zone)),
        _section("Closed lately", _incidents(closed, status.now, zone)),
    )


def _section(title: str, content: Html) -> Html:
    return tag("section", tag("h2", title), content) if content else Html("")


def _link(path: str) -> Html:
    return tag("a", path, href=path)


def _links(status: Status) -> Html:
    paths = ("/api/v1/status", *(("/api/v1/agents",) if status.agents else ()), "/metrics")
    return joined(*map(_link, paths), by=", ")


def _chip(kind: str, words: str) -> Html:
    return tag("span", words, class_=f"chip {kind}")


def _header(status: Status, zone: tzinfo | None) -> Html:
    state = _chip("good", "ready") if status.ready else _chip("bad", "not ready")
    return tag(
        "header",
        tag("h1", "verlwatch ", state),
        tag("p", "As of ", clock(status.now, zone), class_="quiet"),
        tag(
            "p",
            f"Version {status.version}, {status.role}, running since ",
            moment(status.started_at, status.now, zone),
            class_="quiet",
        ),
    )


def _trouble(status: Status, stalled: str | None) -> Html:
    """What is wrong with verlwatch itself: a watcher that does not see must not look as if all were well."""
    silent = [one.name for one in status.agents if status.is_silent(one)]
    said = [
        *([f"Not judging: {stalled}"] if stalled else []),
        *(f"Not ready: {what}" for what in status.not_ready),
        *([f"Agents not heard for more than {SILENT_S:.0f} s: {_named(silent)}"] if silent else []),
        *status.notices,
        *(f"Given up for {one.name}: {one.dead:,} messages" for one in status.receivers if one.dead),
    ]
    return tag("ul", *(tag("li", text) for text in said), class_="trouble") if said else Html("")


def _incidents(incidents: Sequence[IncidentStatus], now: float, zone: tzinfo | None) -> Html:
    shown = (_incident(one, now, zone) for one in incidents[:INCIDENTS_LIMIT])
    return joined(*shown, _more(len(incidents) - INCIDENTS_LIMIT))


def _incident(one: IncidentStatus, now: float, zone: tzinfo | None) -> Html:
    unit = MEASURES[one.phase].unit if one.phase in MEASURES else "s" if one.phase in JUDGED else ""
    ended = f", {one.closed_as} at step {one.closed_step}" if one.closed_as else ""
    since = f"since step {one.onset_step}, noticed at step {one.opened_step}{ended}"
    known = one.before is not None and one.after is not None
    change = (
        f"{number(one.before, unit)} → {number(one.after, unit)} ({ratio(one.ratio)})" if known else ratio(one.ratio)
    )
    what = f" · {one.phase} · {change}"
    if one.ratio is None:
        has_steps = one.opened_step > 0  # neither an agent has any, nor a run before its first
        since, what = f"at step {one.opened_step}{ended}" if has_steps else one.closed_as or "open", ""
    return tag(
        "article",
        tag("h3", one.summary),
        tag("p", _chip(one.severity, one.severity), " ", tag("b", one.run), what),
        tag("p", f"{since} · opened ", moment(one.opened_at, now, zone), class_="quiet"),
        tag("p", f"{one.rule} · ", tag("code", one.id), f" · not told: {one.held}" if one.held else "", class_="quiet"),
        class_=f"incident {one.severity if one.state != 'closed' else 'closed'}",
    )


def _runs(status: Status, zone: tzinfo | None) -> Html:
    if not status.runs:
        return tag("p", "None yet: no source has shown a step.", class_="quiet")
    troubled = {one.run for one in status.incidents if one.state != "closed"}
    ordered = sorted(status.runs, key=lambda run: (run.name not in troubled, _RUN_ORDER.get(run.state, 4)))
    of_cards = sum(bool(run.gpus) for run in ordered[:RUNS_LIMIT])
    shown = (_run(run, status.now, zone, of_cards) for run in ordered[:RUNS_LIMIT])
    return joined(*shown, _more(len(ordered) - RUNS_LIMIT))


def _more(left_out: int) -> Html:
    return tag("p", f"And {left_out} more: see ", _link("/api/v1/status"), class_="quiet") if left_out > 0 else Html("")


def _run(run: RunStatus, now: float, zone: tzinfo | None, runs: int) -> Html:
    step = "no step yet" if run.step is None else f"step {run.step}"
    facts = [
        tag("b", f"{step} of {run.total_steps}" if run.total_steps else step),
        joined("last step ", moment(run.step_at, now, zone)) if run.step_at is not None else "",
        joined(f"{run.state} since ", moment(run.state_at, now, zone)) if run.state_at is not None else "",
        f"attempt {run.attempt}" if run.attempt > 1 else "",
        f"verl {run.verl_version}" if run.verl_version else "",
        run.experiment,
    ]
    progress = (
        tag("progress", f"{run.step} of {run.total_steps}", value=run.step or 0, max=run.total_steps)
        if run.total_steps
        else ""
    )
    return tag(
        "article",
        tag("h3", run.name, " ", _chip(run.state.replace(" ", "-"), run.state)),
        tag("p", joined(*facts, by=" · ")),
        progress,
        _phases(run.phases) if run.phases else "",
        cards(run.gpus, runs),
        tag("p", run.ranks_hint, class_="quiet") if run.ranks_hint and run.state != "finished" else "",
        class_="run",
    )


def _phases(phases: Sequence[PhaseStatus]) -> Html:
    headings = ("Phase", "Now", "Baseline", "Ratio", "Share", "Trend")
    rows = [
        (
            f"{one.state} total" if one.name == STEP else one.state,
            (
                joined(one.name, " ", _chip(one.state, words) if (words := _STATE_WORDS.get(one.state)) else ""),
                number(one.now_s, "s"),
                number(one.baseline_s, "s"),
                ratio(one.ratio),
                share(one.share),
                sparkline(one.recent, one.baseline_s),
            ),
        )
        for one in phases
    ]
    return table(headings, rows, "phases")


def _agents(status: Status, zone: tzinfo | None) -> Html:
    headings = ("Agent", "Last heard", "Version", "Clock", "Lag", "Waiting", "Sources", "Counted")
    ordered = sorted(status.agents, key=lambda one: not status.is_silent(one))
    rows = [("bad" if status.is_silent(one) else "", _agent(one, status, zone)) for one in ordered[:AGENTS_LIMIT]]
    strangers = f"{status.strangers:,} requests with a token that is nobody's, or another agent's."
    return joined(
        table(headings, rows, "stack") if rows else "",
        _more(len(ordered) - AGENTS_LIMIT),
        tag("p", strangers, class_="quiet") if status.strangers else "",
    )


def _agent(one: AgentStatus, status: Status, zone: tzinfo | None) -> Sequence[str]:
    silent = _chip("bad", "silent") if status.is_silent(one) else ""
    heard = joined(silent, " " if silent else "", moment(one.seen_at, status.now, zone))
    counts = (
        (one.thinned, "samples thinned"),
        (one.lost, "shipments lost"),
        (one.repeated, "repeated"),
        (one.refused, "requests refused"),
    )
    counted = ", ".join(f"{count:,} {words}" for count, words in counts if count) or "–"
    if one.seen_at is None:
        return tag("b", one.name), heard, "–", "–", "–", "–", "–", counted
    blind = f", {len(one.unreadable):,} cannot be read: {_named(one.unreadable)}" if one.unreadable else ""
    return (
        tag("b", one.name),
        heard,
        one.version or "–",
        f"{number(abs(one.skew_s), 's')} {'ahead' if one.skew_s > 0 else 'behind'}" if one.skew_s is not None else "–",
        duration(one.lag_s),
        f"{one.waiting:,}",
        f"{one.sources:,}{blind}",
        counted,
    )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(shortened(name, _NAME_LIMIT) for name in names[:_NAMED]) + more


def _sources(sources: Sequence[SourceStatus], now: float, zone: tzinfo | None) -> Html:
    headings = ("Source", "Run", "State", "Position", "Not judged", "Lines known", "Last read")
    rows = [("" if one.readable else "bad", _source(one, now, zone)) for one in sources[:SOURCES_LIMIT]]
    return joined(table(headings, rows, "stack"), _more(len(sources) - SOURCES_LIMIT)) if rows else tag("p", "None.")


def _source(one: SourceStatus, now: float, zone: tzinfo | None) -> Sequence[str]:
    counts = (
        (one.cut_lines, "cut"),
        (one.broken_lines, "broken"),
        (one.undecodable_lines, "undecodable"),
        (one.nul_bytes, "NUL"),
    )
    odd = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    return (
        tag("code", one.source),
        one.run,
        joined(_chip("live" if one.readable else "bad", one.state), " ", one.error or ""),
        _read(one),
        f"{size(one.lag_bytes)}, {duration(one.lag_s)}" if one.lag_bytes else "nothing",
        f"{one.lines:,} ({odd})" if odd else f"{one.lines:,}",
        moment(one.last_read_at, now, zone),
    )


def _read(one: SourceStatus) -> str:
    if not one.size:
        return size(one.position)
    return f"{size(one.position)} of {size(one.size)} ({min(1.0, one.position / one.size):.0%})"


def _receivers(receivers: Sequence[ReceiverStatus], now: float, zone: tzinfo | None) -> Html:
    headings = ("Receiver", "Type", "Delivered", "Waiting", "Given up", "Oldest waiting", "Last error")
    rows = [
        (
            "bad" if one.dead or one.last_error else "",
            (
                tag("b", one.name),
                one.type,
                f"{one.delivered:,}",
                f"{one.pending:,}",
                f"{one.dead:,}",
                moment(one.oldest_pending_at, now, zone) if one.oldest_pending_at is not None else escaped("–"),
                one.last_error or "–",
            ),
        )
        for one in receivers
    ]
    return table(headings, rows, "stack") if rows else tag("p", "None: nobody is told.", class_="quiet")
