"""The words of the page: its head, changes, findings, advice, and every table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from verlwatch.report._html_tags import Html, chip, grid, joined, section, tag
from verlwatch.report._model import Advice, Finding, Incident, Report
from verlwatch.report._sections import Block, Table, shares
from verlwatch.report._words import Words

_LOGS = 8
"""Files that are named; of more, how many there are."""


def header(report: Report, words: Words) -> Html:
    """Which training this is, and the sentence for somebody who reads no further."""
    run = report.run
    logs = [*run.logs[:_LOGS]]
    more = words("and {count} more", count=len(run.logs) - _LOGS) if len(run.logs) > _LOGS else ""
    return tag(
        "header",
        tag("h1", run.name),
        tag("p", report.headline, class_="lead"),
        tag("p", run.remark) if run.remark else "",
        tag("dl", *_facts(report, words), class_="facts") if run.steps else "",
        tag("p", words("read of"), " ", joined(*(tag("code", log) for log in logs), more, by=", "), class_="quiet"),
    )


def _facts(report: Report, words: Words) -> Iterator[Html]:
    run, cost = report.run, report.cost
    planned = words("of {planned}", planned=f"{run.planned:,}") if run.planned else ""
    stretch = words("{first} to {last}", first=f"{run.first:,}", last=f"{run.last:,}")
    yield _fact(words("Steps"), f"{run.steps:,}", words.listed(text for text in (stretch, planned) if text))
    kind = words("finished") if run.finished else ""
    again = words("{attempts} attempts", attempts=run.attempts) if run.attempts > 1 else ""
    waits = words("asynchronous: gen is the time it waits for samples") if run.is_async else ""
    yield _fact(words("Time of training"), words.span(run.seconds),
                words.listed(text for text in (kind, again, waits) if text))  # fmt: skip
    yield _fact("verl", run.release or words("not told"))
    if run.gpus:
        yield _fact(words("GPUs"), f"{run.gpus:,}", words.listed((run.gpus_from, *run.hosts[:1])))
    if cost is not None and cost.total.gpu_hours is not None:
        yield _fact(words("GPU-hours"), _hours(cost.total.gpu_hours))
    if cost is not None and cost.lost is not None:
        hours = f"{_hours(cost.lost.gpu_hours)} {words('GPU-hours')}" if cost.lost.gpu_hours is not None else ""
        part = f"{cost.lost.share:.1%}" if cost.lost.share is not None else ""
        yield _fact(words("Lost to changes"), words.span(cost.lost.seconds),
                    words.listed(text for text in (hours, part) if text))  # fmt: skip


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"  # noqa: PLR2004 - width


def _fact(name: str, value: str, more: str = "") -> Html:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else ""))


def changes(report: Report, said: Sequence[Block], words: Words) -> Html:
    """A card for each incident, numbered as in the charts; ``said`` is what text says of them, in the same order."""
    told = [block for block in said if isinstance(block, list)]
    cards = [_change(*one, words) for one in zip(range(1, len(told) + 1), report.incidents, told, strict=False)]
    spoken = [tag("p", block, class_="prose") for block in said if isinstance(block, str)] if not cards else []
    return section(words("Changes"), *spoken, *cards)


def _change(number: int, incident: Incident, said: Sequence[str], words: Words) -> Html:
    where, details = said[0], [text for text in said[1:] if text != incident.text]
    if incident.attribution is not None or incident.before is not None:
        details = details[1:]  # the ratio and the severity, which stand in the heading
    table = ""
    if incident.attribution is not None:
        label = words("Where the seconds come from")
        table = tag("details", tag("summary", label), grid(shares(incident.attribution, words), label))
    return tag(
        "article",
        tag("h3", tag("span", str(number), class_="number"), incident.title, " ", _severity(incident.severity, words)),
        tag("p", where, class_="quiet"),
        tag("p", incident.text),
        tag("ul", *(tag("li", text) for text in details)) if details else "",
        table,
        id=f"i{number}",
        class_=f"incident {incident.severity}",
    )


def _severity(severity: str, words: Words) -> Html:
    return chip(severity, words(severity))


def findings(report: Report, words: Words) -> Html:
    """Those that are not told as changes already."""
    told = {incident.title for incident in report.incidents}
    cards = [_finding(found, words) for found in report.findings if found.title not in told]
    return section(words("What the log shows"), *cards)


def _finding(found: Finding, words: Words) -> Html:
    return tag(
        "article",
        tag("h3", found.title, " ", _severity(found.severity, words), " ", chip("", words(found.confidence))),
        tag("p", found.text),
        tag("ul", *(tag("li", text) for text in found.evidence)) if found.evidence else "",
        class_=f"incident {found.severity}",
    )


def advice(report: Report, said: Sequence[Block], words: Words) -> Html:
    """A card for each key."""
    spoken = [tag("p", block, class_="prose") for block in said if isinstance(block, str)]
    return section(words("What to try"), *(_advice(one, words) for one in report.advice), *spoken)


def _advice(one: Advice, words: Words) -> Html:
    rows = ((words("now"), str(one.value)), (words("try"), one.attempt), (words("why"), one.why),
            (words("proof"), one.proof), (words("because of"), one.finding))  # fmt: skip
    return tag(
        "article",
        tag("h3", tag("code", one.key), " ", chip("", words(one.confidence))),
        tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in rows)),
    )


def blocks(said: Iterable[Block], label: str) -> Html:
    """Paragraphs, lists and tables as they stand."""
    return joined(*(_block(block, label) for block in said))


def _block(block: Block, label: str) -> Html:
    if isinstance(block, Table):
        return grid(block, label)
    if isinstance(block, str):
        return tag("p", block, class_="prose")
    first, rest = block[0], block[1:]
    return tag("article", tag("p", first), tag("ul", *(tag("li", text) for text in rest)) if rest else "")


def missing(report: Report, words: Words) -> Html:
    """Questions that stay open, and how the next log answers them."""
    if not report.missing:
        return Html("")
    rows = tuple((one.what, one.turn_on) for one in report.missing)
    title = words("What this log does not tell")
    items = (joined(tag("dt", what), tag("dd", _coded(how))) for what, how in rows)
    return section(title, tag("article", tag("dl", *items, class_="open")))


def _coded(text: str) -> Html:
    """Text in which what stands between backquotes is code."""
    parts = text.split("`")
    return joined(*(tag("code", part) if i % 2 and i < len(parts) - 1 else part for i, part in enumerate(parts)))
