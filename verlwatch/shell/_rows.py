"""Values of the core as columns of the database, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

from verlwatch.core.types import Message, Reason, State, StepRow, Transition

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What the readers of this module raise for a column that does not hold what it should, as a bad disk may leave it."""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message that a receiver has not taken yet; ``attempts`` counts the sends that were begun before."""

    id: int
    dedup_key: str
    incident: str
    receiver: str
    reason: Reason
    message: Message
    created_at: float
    due_at: float
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A row of the outbox as a person is shown it: ``status`` is pending or dead, ``due_at`` when it is tried again."""

    id: int
    dedup_key: str
    incident: str
    receiver: str
    reason: str
    status: str
    created_at: float
    due_at: float | None
    attempts: int
    error: str
    title: str


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """One receiver's rows: ``pending`` not yet taken, ``done`` taken, ``dead`` given up."""

    pending: int = 0
    done: int = 0
    dead: int = 0
    oldest_pending_at: float | None = None
    last_error: str | None = None


def pack(data: Any) -> bytes:
    """JSON from which `unpack` gives every number back exactly, NaN and the infinities too.

    orjson writes the shortest digits that read back to the same float, but null for a number that is not finite;
    only then the slower standard library, which has names for those, takes over.
    """
    try:
        blob = orjson.dumps(data)
    except TypeError:  # a whole number of more than 64 bits, a text that is no UTF-8
        return json.dumps(data, separators=(",", ":")).encode()
    if b"null" in blob and not _is_finite(data):
        return json.dumps(data, separators=(",", ":")).encode()
    return blob


def unpack(blob: bytes) -> Any:
    """The inverse of `pack`; tuples come back as lists."""
    try:
        return orjson.loads(blob)
    except orjson.JSONDecodeError:
        return json.loads(blob)


def _is_finite(data: Any) -> bool:
    """Whether every null in the JSON of ``data`` is a None.  Only parts that have one are looked into."""
    if isinstance(data, float):
        return math.isfinite(data)
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ()
    return all(part is None or b"null" not in orjson.dumps(part) or _is_finite(part) for part in parts)


def pack_values(values: Mapping[str, float]) -> bytes:
    """The numbers of a step."""
    return pack(dict(values))


def state(kind: Any, key: str, version: int, blob: bytes) -> State:
    """A row of the state table.  One that cannot be read comes out empty, a form that the core leaves out."""
    try:
        data = unpack(blob)
    except UNREADABLE:
        data = None
    return State(kind, key, version, data if isinstance(data, dict) else {})


def step_row(prefix: str, run: str, attempt: int, step: int, at: float, blob: bytes) -> StepRow:
    """A row of the step table as the core knows it, with the values whose names begin with ``prefix``."""
    values = {name: float(value) for name, value in unpack(blob).items() if name.startswith(prefix)}
    return StepRow(run, attempt, step, at, values)


def pack_record(record: Transition | Message) -> bytes:
    """A dataclass of strings, numbers and pairs of strings."""
    return pack(asdict(record))


def dated_transition(at: float, blob: bytes) -> tuple[float, Transition]:
    """A row of the transition table."""
    return at, Transition(**_known(Transition, unpack(blob)))


def message(blob: bytes) -> Message:
    """The inverse of `pack_record`."""
    data = _known(Message, unpack(blob))
    data["facts"] = tuple((label, value) for label, value in data["facts"])
    data["evidence"] = tuple(data["evidence"])
    data["advice"] = tuple(data["advice"])
    data["recent"] = tuple(data.get("recent", ()))
    data["scope"] = tuple((label, value) for label, value in data.get("scope", ()))
    return Message(**data)


def _known(kind: type[Transition | Message], data: dict[str, Any]) -> dict[str, Any]:
    """The fields this release knows: an older or newer one may have written others."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in data.items() if name in names}
