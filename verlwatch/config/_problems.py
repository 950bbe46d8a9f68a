"""What is wrong with a configuration, where, and what to do: pydantic's findings in the words of who wrote the file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from verlwatch.shell.printable import printable, shortened

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top: ``("receivers", 0, "name")``."""

Severity = Literal["error", "warning"]

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written.  ``line`` and ``column`` count from 1; 0 where there is none (a flag, a variable)."""

    file: str
    line: int = 0
    column: int = 0


class Locate(Protocol):
    """Tells where the value at a path was written, or its key; if it was not, the nearest place around it."""

    def __call__(self, path: KeyPath, *, key: bool = False) -> Place:
        """The place."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong (``error``) or worth knowing (``warning``); ``text`` says what it is and what to do."""

    file: str
    line: int
    column: int
    path: str
    text: str
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        warning = "warning: " if self.severity == "warning" else ""
        return f"{place}: {warning}{self.path}: {self.text}" if self.path else f"{place}: {warning}{self.text}"


class ConfigError(Exception):
    """The configuration cannot be used; ``problems`` holds everything that is wrong with it, in the file's order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column)))
        super().__init__("\n".join(map(str, self.problems)))


def problem(place: Place, path: KeyPath, text: str, severity: Severity = "error") -> Problem:
    """A Problem at a place."""
    return Problem(printable(place.file), place.line, place.column, dotted(path), text, severity)


def dotted(path: KeyPath) -> str:
    """``receivers[0].name`` of a key path."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shortened(part, _SHOWN)}"
    return text.removeprefix(".")


def meant(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant; ``cutoff`` is difflib's similarity, 0 to 1."""
    close = difflib.get_close_matches(word[:_SHOWN], list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def meant_key(key: str, known: Iterable[str]) -> str | None:
    """The field that a key was probably meant for: the one that names a file for a secret, else the closest."""
    fields = list(known)
    return f"{key}_file" if f"{key}_file" in fields else meant(key, fields)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What to say of a key that no field has."""
    fields = list(known)
    close = meant_key(key, fields)
    if close == f"{key}_file":
        return f"is a secret and must not stand here; write it into a file (mode 0600) and give {close}: PATH"
    advice = f"did you mean {close}?" if close else f"known here: {', '.join(fields)}" if fields else "remove it"
    return f"unknown key; {advice}"


def from_validation(
    error: ValidationError, locate: Locate, keys_at: Callable[[KeyPath], Iterable[str]]
) -> list[Problem]:
    """All findings of pydantic; ``keys_at`` tells the keys that the mapping at a path may have."""
    found = []
    every = [(_without_tag(details["loc"]), details) for details in error.errors(include_url=False)]
    for at, details in every:
        if _follows(at, details, every, keys_at):
            continue
        path = at
        unknown = details["type"] == "extra_forbidden"
        if unknown:
            text = unknown_key(str(path[-1]), keys_at(path[:-1]))
        elif details["type"] in {"union_tag_invalid", "union_tag_not_found"}:
            path, text = (*path, "type"), _wrong_type(details)
        else:
            text = _text(details)
        found.append(problem(locate(path, key=unknown), path, text))
    return found


def _follows(
    path: KeyPath,
    details: ErrorDetails,
    every: Sequence[tuple[KeyPath, ErrorDetails]],
    keys_at: Callable[[KeyPath], Iterable[str]],
) -> bool:
    """Whether a finding only follows from another one.

    A list whose entries are all wrong counts as too short, and a required key as missing where it is misspelt.
    """
    if details["type"] == "too_short":
        return any(len(other) > len(path) and other[: len(path)] == path for other, _ in every)
    if details["type"] != "missing":
        return False
    beside = (str(other[-1]) for other, one in every if one["type"] == "extra_forbidden" and other[:-1] == path[:-1])
    return any(meant_key(key, keys_at(path[:-1])) == path[-1] for key in beside)


def _without_tag(loc: KeyPath) -> KeyPath:
    """Pydantic names the chosen kind of receiver behind the index: ``("receivers", 0, "slack", "name")``."""
    return loc[:2] + loc[3:] if loc[:1] == ("receivers",) else loc


def _wrong_type(details: ErrorDetails) -> str:
    context = details.get("ctx", {})
    known = str(context.get("expected_tags", "")).replace("'", "")
    if details["type"] == "union_tag_not_found":
        return "is missing or no text; say which kind of receiver this is, for example type: slack"
    close = meant(str(context.get("tag", "")), known.split(", "))
    return f"unknown kind of receiver; {f'did you mean {close}?' if close else f'known: {known}'}"


_TEXTS: Mapping[str, str] = {
    "missing": "is required; add it",
    "model_type": "must be a mapping; write it as key: value lines",
    "model_attributes_type": "must be a mapping; write it as key: value lines",
    "tuple_type": "must be a list; put - before each entry, or the entries in [ ]",
    "string_type": "must be a text",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large",
    "too_short": "is an empty list; add an entry",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


def _text(details: ErrorDetails) -> str:
    """What one finding says; the value itself is never repeated, it could be a secret."""
    context: dict[str, Any] = details.get("ctx", {})
    if details["type"] == "value_error":
        return str(context["error"])
    if details["type"] == "literal_error":
        return f"must be {str(context['expected']).replace(chr(39), '')}"
    known = _TEXTS.get(details["type"])
    return known.format_map(context) if known else details["msg"][:1].lower() + details["msg"][1:]
