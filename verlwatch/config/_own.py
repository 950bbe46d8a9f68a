"""Lines that a user describes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from verlwatch.fields import Model
from verlwatch.shell import own_lines

_MOST = 32
_SHORTEST, _LONGEST = 5, 200


def parse_line_name(text: str) -> str:
    """``text`` if it can be the name of a kind of line: it stands in records, beside those of the built-in kinds."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", text):
        raise ValueError("must begin with a-z and consist of a-z, 0-9 and _ (at most 64); as in gather_time")
    if text in own_lines.TAKEN:
        raise ValueError(f"{text} is the name of a built-in kind of line; write for example my_{text}")
    return text


def parse_contains(text: str) -> str:
    """``text`` if it is long enough to be looked for, and on one line."""
    if not _SHORTEST <= len(text.encode()) <= _LONGEST or not text.isprintable():
        raise ValueError(
            f"must be {_SHORTEST} to {_LONGEST} printable bytes that stand, as they are, in each such line; "
            "take the longest part of it that never changes"
        )
    return text


def parse_pattern(text: str) -> str:
    """``text`` if it can be run and has a group for the value."""
    own_lines.search_of(text)
    return text


def parse_unit(text: str) -> str:
    """``text`` if it can be a unit."""
    if not re.fullmatch(r"[^\s\d]\S{0,19}", text) or not text.isprintable():
        raise ValueError("must be a unit of at most 20 characters; write for example ms")
    return text


def readable(lines: object) -> object:
    """``lines`` if they can be read here, and do not slow down the reading of all others."""
    if lines and not own_lines.is_installed():
        raise ValueError("are read with google-re2, which is not installed; pip install 'verlwatch[own]'")
    if isinstance(lines, list | tuple) and len(lines) > _MOST:
        raise ValueError(f"must be at most {_MOST}; a group metric lets one entry read lines of several names")
    return lines


class OwnLine(Model):
    """A line to read besides those that verlwatch knows, and the number that stands in it."""

    name: Annotated[str, AfterValidator(parse_line_name)] = Field(
        description="Unique name: a-z, 0-9 and _. What the line measures is called so where the pattern has no group "
        "`metric`."
    )
    contains: Annotated[str, AfterValidator(parse_contains)] = Field(
        description="A text of 5 to 200 bytes that stands, as it is, in each such line; all others are passed over."
    )
    pattern: Annotated[str, AfterValidator(parse_pattern)] = Field(
        description="Regular expression (RE2), looked for anywhere in the line: the number in a group `value` and, "
        "where the line has them, groups `metric`, `unit`, `rank` and `step`."
    )
    unit: Annotated[str, AfterValidator(parse_unit)] = Field(
        default="", description="Unit of the value where the line itself does not say one."
    )
