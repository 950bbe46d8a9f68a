"""What an agent sends to a hub, and how the hub reads it: JSON, every field checked before anything is believed.

A *shipment* is what a commit of an agent read, or a part of that: extracts, under a number that grows by one.  A
*delivery* is one request: some shipments in order, and how the agent stands.  The shipments' JSON is written once, when
they are committed, and put into deliveries as it is.  Fields that this version does not know are ignored, so that
versions that differ a little understand each other; another ``version`` is refused.

What a hub would refuse must never be shipped: it would be sent again for ever, and all that comes after it would wait.
So whoever writes cuts what is too long here, and leaves out, and counts, a record that is too large as a whole.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,  # Python 3.12's own is what pydantic can read
)

import orjson
from pydantic import AfterValidator, BeforeValidator, FailFast, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from verlwatch.core.types import Event, Extract, Origin, Record, Samples, Writer
from verlwatch.shell.printable import encodable

VERSION = 1
LARGEST = 2**63 - 1
MOST_VALUES = 10_000
MOST_ATTRIBUTES = 700
MOST_SOURCES = 2000
MOST_SHIPMENTS = 200
"""In one delivery."""
MOST_RECORDS = 64
"""In one shipment: what is judged without a pause."""
SHIPMENT_BYTES = 256 << 10
"""A shipment is closed before it would be larger, unless a single record is."""
RECORD_BYTES, GPU_SAMPLE = 1 << 20, "gpu_sample"
"""A record that would be larger is left out."""
_LONGEST_WORD, _LONGEST_NAME, _LONGEST_TEXT = 200, 100, 4096

Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Whole = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Number = Whole | Annotated[float, Field(strict=True)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Word = Annotated[str, Field(max_length=_LONGEST_WORD)]
Text = Annotated[str, Field(max_length=_LONGEST_TEXT)]
Fact = Text | Number


def _on_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable, on one line")
    return text


Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME), AfterValidator(_on_one_line)]


class DeliveryError(Exception):
    """A delivery that is not one; the text says where and why, without the content."""


# The first error in a list is enough, and what has too many keys is not looked at: a hostile body has a million errors,
# and to tell each of them takes a kilobyte and some microseconds.


def _of_at_most(most: int) -> BeforeValidator:
    def check(named: Any) -> Any:
        if isinstance(named, dict) and len(named) > most:
            raise ValueError(f"must have {most} items at most")
        return named

    return BeforeValidator(check)


class _Record(TypedDict):
    """Samples where there are ``values``, else an Event."""

    kind: Word
    generation: Count
    end: Count
    writer: tuple[Word, Count, Word]
    step: NotRequired[Count]
    values: NotRequired[Annotated[dict[Word, Number], _of_at_most(MOST_VALUES)]]
    decimals: NotRequired[Count | None]
    name: NotRequired[Word]
    attributes: NotRequired[Annotated[dict[Word, Fact], _of_at_most(MOST_ATTRIBUTES)]]
    severity: NotRequired[Literal["info", "warning", "critical"]]
    excerpt: NotRequired[Text]
    scope: NotRequired[Annotated[list[tuple[Word, Word]], Field(max_length=20), FailFast()]]
    at: NotRequired[Finite]


class _Extract(TypedDict):
    source: Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
    run: Name
    history: bool
    records: Annotated[list[_Record], Field(max_length=MOST_RECORDS), FailFast()]


_Extracts = Annotated[list[_Extract], Field(max_length=MOST_RECORDS), FailFast()]


class Shipment(TypedDict):
    """What one commit read, or part of it; ``thinned`` samples were left out of it for want of room."""

    number: Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
    thinned: Count
    extracts: _Extracts


class SourceReport(TypedDict):
    """How a file of an agent stands: the agent's own SourceStatus, in part."""

    source: Text
    run: Word
    state: Word
    readable: bool
    error: Text | None
    lag_bytes: Count
    lag_s: Finite | None


class Delivery(TypedDict):
    """One request.

    ``epoch`` names the life of the agent's outbox: numbers begin anew with a later one.  ``oldest`` is the number of
    the oldest shipment that it still holds, or of the next one where it holds none; ``waiting`` how many those are.
    ``sent_at`` is the agent's clock, ``offset_s`` by how much it has found the hub's to be ahead (see docs/FLEET.md).
    """

    version: Literal[1]
    agent: Name
    software: Word
    epoch: Count
    oldest: Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
    waiting: Count
    sent_at: Finite
    offset_s: Finite | None
    sources: Annotated[list[SourceReport], Field(max_length=MOST_SOURCES), FailFast()]
    shipments: Annotated[list[Shipment], Field(max_length=MOST_SHIPMENTS), FailFast()]


@cache
def _delivery() -> TypeAdapter[Delivery]:
    """Made when the first one comes: most watchers take none, and its making needs a megabyte."""
    return TypeAdapter(Delivery)


@cache
def _extracts() -> TypeAdapter[list[_Extract]]:
    return TypeAdapter(_Extracts)


def pack(data: Any) -> bytes:
    """JSON; a number that is not finite is written as NaN or Infinity, what JSON cannot hold as something near it."""
    try:
        packed = orjson.dumps(data)
    except TypeError:  # a file name that is no UTF-8, a whole number of more than 64 bits
        data = _within_json(data)
        packed = orjson.dumps(data)
    return packed if b"null" not in packed else json.dumps(data, separators=(",", ":")).encode()


class Packed(NamedTuple):
    """A shipment to be: how many samples are in it and how many were left out, and the JSON of its extracts."""

    samples: int
    thinned: int
    extracts: bytes


def pack_extracts(extracts: Iterable[Extract]) -> Iterator[Packed]:
    """Shipments that hold all of ``extracts`` in their order, each small enough for a hub."""
    parts: list[bytes] = []
    count = size = samples = left_out = 0
    for extract in extracts:
        head = pack({"source": _source(extract.source), "run": _name(extract.run), "history": extract.history})[:-1]
        records: list[bytes] = []
        for record in extract.records:
            packed = pack(_packed(record))
            if len(packed) > RECORD_BYTES:
                left_out += 1
                continue
            if count and (count == MOST_RECORDS or size + len(packed) > SHIPMENT_BYTES):
                yield Packed(samples, left_out, _joined([*parts, *_extract(head, records)]))
                parts, records = [], []
                count = size = samples = left_out = 0
            records.append(packed)
            count, size, samples = count + 1, size + len(packed), samples + _is_sample(record)
        parts += _extract(head, records)
    if count or left_out:
        yield Packed(samples, left_out, _joined(parts))


def _is_sample(record: Record) -> bool:
    """Whether it may be left out for want of room: numbers of a step, and of a GPU at one of many instants."""
    return isinstance(record, Samples) or record.name == GPU_SAMPLE


def thinned(extracts: bytes) -> bytes:
    """Packed extracts without their samples.  Raises ValueError, TypeError or KeyError where they are none."""
    kept = [
        {**extract, "records": [one for one in extract["records"] if "values" not in one and one["name"] != GPU_SAMPLE]}
        for extract in from_json(extracts)
    ]
    return pack([extract for extract in kept if extract["records"]])


def is_whole(extracts: bytes) -> bool:
    """Whether a hub can read these packed extracts."""
    try:
        return _count(_extracts().validate_json(extracts)) <= MOST_RECORDS
    except ValidationError:
        return False


def pack_delivery(head: Mapping[str, Any], shipments: Iterable[tuple[int, int, bytes]]) -> bytes:
    """A delivery; ``shipments`` are number, thinned, and the packed extracts as they were stored."""
    parts = b",".join(
        b'{"number":%d,"thinned":%d,"extracts":%b}' % (number, thinned, extracts)
        for number, thinned, extracts in shipments
    )
    return pack({"version": VERSION, **head})[:-1] + b',"shipments":[' + parts + b"]}"


def unpack(body: bytes) -> Delivery:
    """The inverse of `pack_delivery`.

    Raises:
        DeliveryError: it is none, or of another version.
    """
    try:
        delivery = _delivery().validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8])[:200]
        raise DeliveryError(f"{where or 'body'}: {first['msg']}"[:300]) from None
    shipments = delivery["shipments"]
    numbers = [shipment["number"] for shipment in shipments]
    if numbers and (numbers[0] < delivery["oldest"] or numbers != list(range(numbers[0], numbers[0] + len(numbers)))):
        raise DeliveryError("shipments: their numbers must follow one another, none before the oldest")
    for place, shipment in enumerate(shipments):
        if _count(shipment["extracts"]) > MOST_RECORDS:
            raise DeliveryError(f"shipments.{place}: may hold {MOST_RECORDS} records")
    return delivery


def extracts_of(shipment: Shipment, agent: str, ahead_s: float = 0.0) -> list[Extract]:
    """The extracts, their sources named ``AGENT:SOURCE``: two hosts may have files of the same name.

    The hub's clock is ``ahead_s`` of the agent's: instants are told in the hub's time.
    """
    return [
        Extract(
            source := f"{agent}:{extract['source']}",
            extract["run"],
            tuple(_record(source, record, ahead_s) for record in extract["records"]),
            extract["history"],
        )
        for extract in shipment["extracts"]
    ]


def _packed(record: Record) -> dict[str, Any]:
    _, generation, end, (name, pid, ip), kind = record.origin
    writer = (name[:_LONGEST_WORD], pid, ip[:_LONGEST_WORD])
    packed: dict[str, Any] = {"kind": kind, "generation": generation, "end": end, "writer": writer}
    if record.scope:
        packed["scope"] = record.scope
    if record.at is not None and math.isfinite(record.at):
        packed["at"] = record.at
    if isinstance(record, Samples):
        packed |= {"step": record.step, "values": _within(record.values, MOST_VALUES)}
        return packed if record.decimals is None else packed | {"decimals": record.decimals}
    return packed | {
        "name": record.name,
        "attributes": {
            key: fact[:_LONGEST_TEXT] if isinstance(fact, str) else fact
            for key, fact in _within(record.attributes, MOST_ATTRIBUTES).items()
        },
        "severity": record.severity,
        "excerpt": record.excerpt[:_LONGEST_TEXT],
    }


def _within(named: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    """Without what has too long a name, or is one too many."""
    if len(named) <= most and max(map(len, named), default=0) <= _LONGEST_WORD:
        return named
    return dict([item for item in named.items() if len(item[0]) <= _LONGEST_WORD][:most])


def _source(path: str) -> str:
    return encodable(path)[-_LONGEST_TEXT:]


def _name(run: str) -> str:
    if run.isprintable() and 0 < len(run) <= _LONGEST_NAME:
        return run
    plain = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in run)
    return plain[:_LONGEST_NAME] or "run"


def _within_json(data: Any) -> Any:
    if isinstance(data, str):
        return encodable(data)
    if isinstance(data, int) and not isinstance(data, bool):
        return max(-LARGEST, min(LARGEST, data))
    if isinstance(data, Mapping):
        return {encodable(key): _within_json(value) for key, value in data.items()}
    return [_within_json(each) for each in data] if isinstance(data, list | tuple) else data


def _extract(head: bytes, records: Sequence[bytes]) -> list[bytes]:
    return [head + b',"records":[' + b",".join(records) + b"]}"] if records else []


def _joined(extracts: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(extracts) + b"]"


def _count(extracts: Iterable[_Extract]) -> int:
    return sum(len(extract["records"]) for extract in extracts)


def _record(source: str, packed: _Record, ahead_s: float) -> Record:
    origin = Origin(source, packed["generation"], packed["end"], Writer(*packed["writer"]), packed["kind"])
    scope, at = tuple(packed.get("scope", ())), packed.get("at")
    at = at + ahead_s if at is not None and ahead_s else at
    values = packed.get("values")
    if values is not None:
        return Samples(origin, packed.get("step", 0), values, packed.get("decimals"), scope, at)
    return Event(
        origin,
        packed.get("name", ""),
        packed.get("attributes", {}),
        packed.get("severity", "info"),
        packed.get("excerpt", ""),
        scope,
        at,
    )
