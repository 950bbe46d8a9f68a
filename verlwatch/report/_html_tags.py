"""Small pieces of HTML and SVG: elements whose text is always escaped, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from verlwatch.report._sections import Table
from verlwatch.shell.printable import encodable, printable

_VOID = frozenset({"meta", "line", "rect", "circle", "path"})


class Html(str):
    """Markup that is safe as it stands; any other text is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """``text`` as one harmless line."""
    return text if isinstance(text, Html) else Html(escape(printable(encodable(text))))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """An element; ``class_`` and ``data_label`` stand for ``class`` and ``data-label``, None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value if isinstance(value, str) else plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}>" if name == "meta" else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str, by: str = "") -> Html:
    """The children one after the other, the empty ones left out."""
    return Html(by.join(escaped(child) for child in children if child))


def plain(value: float) -> str:
    """A coordinate: at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


def section(title: str, *content: str, lead: str = "") -> Html:
    """A part of the page with its heading; nothing where it has no content."""
    inside = joined(*content)
    if not inside:
        return Html("")
    return tag("section", tag("h2", title), tag("p", lead, class_="quiet") if lead else "", inside)


def chip(kind: str, words: str) -> Html:
    """A word of state."""
    return tag("span", words, class_=f"chip {kind}")


def grid(table: Table, label: str) -> Html:
    """A table that scrolls within itself where it is wider than the page."""
    sides = ["r" if side == "r" else "" for side in table.align]
    head = tag(
        "tr", *(tag("th", text, scope="col", class_=side or None) for text, side in zip(table.head, sides, strict=True))
    )
    body = (_row(cells, sides) for cells in table.rows)
    scrolled = tag(
        "div",
        tag(
            "table",
            tag("thead", head),
            tag("tbody", *body),
            class_=f"grid {'rest' if table.align[-1] == 'l' else ''}".strip(),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=label,
    )
    return joined(scrolled, tag("p", table.note, class_="quiet") if table.note else "")


def _row(cells: Sequence[str], sides: Sequence[str]) -> Html:
    return tag("tr", *(tag("td", cell, class_=side or None) for cell, side in zip(cells, sides, strict=True)))


def figure(
    kind: str, name: str, title: str, chart: Html, said: str, *, notes: str = "", legend: str = "", **data: str
) -> Html:
    """A chart with its heading, what it says in words for those who do not see it, and how it was made."""
    return tag(
        "figure",
        tag("figcaption", tag("h3", title, id=name), tag("output", said)),
        tag("div", chart, class_="plot"),
        tag("p", said, id=f"{name}-d", class_="sr"),
        legend,
        tag("p", notes, class_="quiet") if notes else "",
        data_kind=kind,
        class_=kind,
        **data,
    )
