"""What an agent sends to a hub, and how the hub reads it: JSON, every field checked before anything is believed.

A *shipment* is what one commit of an agent read: extracts, under a number that grows by one.  A *delivery* is one
request: some shipments in order, and how the agent stands.  The shipments' JSON is written once, when they are
committed, and put into deliveries as it is.  Fields that this version does not know are ignored, so that versions that
differ a little understand each other; another ``version`` is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,  # Python 3.12's own is what pydantic can read
)

import orjson
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from verlwatch.core.types import Event, Extract, Origin, Record, Samples, Writer

VERSION = 1
LARGEST = 2**63 - 1
MOST_VALUES = 20_000
MOST_SOURCES = 2000
_LONGEST_SOURCE = 4096

Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Number = Annotated[float, Field(strict=True)]
Word = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=_LONGEST_SOURCE)]
Fact = Text | Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | Number


def _on_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable, on one line")
    return text


Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_on_one_line)]


class DeliveryError(Exception):
    """A delivery that is not one; the text says where and why, without the content."""


class _Record(TypedDict):
    """Samples where there are ``values``, else an Event."""

    kind: Word
    generation: Count
    end: Count
    writer: tuple[Word, Count, Word]
    step: NotRequired[Count]
    values: NotRequired[Annotated[dict[Word, Number], Field(max_length=MOST_VALUES)]]
    decimals: NotRequired[Count | None]
    name: NotRequired[Word]
    attributes: NotRequired[Annotated[dict[Word, Fact], Field(max_length=100)]]
    severity: NotRequired[Literal["info", "warning", "critical"]]
    excerpt: NotRequired[Text]
    scope: NotRequired[Annotated[list[tuple[Word, Word]], Field(max_length=20)]]
    at: NotRequired[Number]


class _Extract(TypedDict):
    source: Annotated[str, Field(min_length=1, max_length=_LONGEST_SOURCE)]
    run: Name
    history: bool
    records: list[_Record]


class Shipment(TypedDict):
    """What one commit read; ``thinned`` samples were left out of it for want of room."""

    number: Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
    thinned: Count
    extracts: list[_Extract]


class SourceReport(TypedDict):
    """How a file of an agent stands: the agent's own SourceStatus, in part."""

    source: Text
    run: Word
    state: Word
    readable: bool
    error: Text | None
    lag_bytes: Count
    lag_s: Number | None


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
    sent_at: Number
    offset_s: Number | None
    sources: Annotated[list[SourceReport], Field(max_length=MOST_SOURCES)]
    shipments: list[Shipment]


_DELIVERY: TypeAdapter[Delivery] = TypeAdapter(Delivery)


def pack(data: Any) -> bytes:
    """JSON; a number that is not finite is written as NaN or Infinity."""
    packed = orjson.dumps(data)
    return packed if b"null" not in packed else json.dumps(data, separators=(",", ":")).encode()


def pack_extracts(extracts: Iterable[Extract]) -> bytes:
    """The ``extracts`` of a shipment."""
    return pack([
        {
            "source": extract.source,
            "run": extract.run,
            "history": extract.history,
            "records": [_packed(record) for record in extract.records],
        }
        for extract in extracts
    ])  # fmt: skip


def thinned(extracts: bytes) -> bytes:
    """Packed extracts without their samples."""
    kept = [
        {**extract, "records": [record for record in extract["records"] if "values" not in record]}
        for extract in json.loads(extracts)
    ]
    return pack([extract for extract in kept if extract["records"]])


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
        return _DELIVERY.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8])[:200]
        raise DeliveryError(f"{where or 'body'}: {first['msg']}"[:300]) from None


def extracts_of(shipment: Shipment, agent: str) -> list[Extract]:
    """The extracts, their sources named ``AGENT:SOURCE``: two hosts may have files of the same name."""
    return [
        Extract(
            source := f"{agent}:{extract['source']}",
            extract["run"],
            tuple(_record(source, record) for record in extract["records"]),
            extract["history"],
        )
        for extract in shipment["extracts"]
    ]


def _packed(record: Record) -> dict[str, Any]:
    _, generation, end, writer, kind = record.origin
    packed: dict[str, Any] = {"kind": kind, "generation": generation, "end": end, "writer": list(writer)}
    if record.scope:
        packed["scope"] = record.scope
    if record.at is not None:
        packed["at"] = record.at
    if isinstance(record, Samples):
        packed |= {"step": record.step, "values": record.values}
        return packed if record.decimals is None else packed | {"decimals": record.decimals}
    return packed | {
        "name": record.name,
        "attributes": record.attributes,
        "severity": record.severity,
        "excerpt": record.excerpt,
    }


def _record(source: str, packed: _Record) -> Record:
    origin = Origin(source, packed["generation"], packed["end"], Writer(*packed["writer"]), packed["kind"])
    scope, at = tuple(packed.get("scope", ())), packed.get("at")
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
