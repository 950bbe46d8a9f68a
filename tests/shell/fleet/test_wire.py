"""What an agent ships arrives as it was read, and what is no delivery is refused whole."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verlwatch.core.gather import Gatherer
from verlwatch.core.types import Chunk, Event, Extract, Origin, Samples, Writer
from verlwatch.shell.fleet.wire import DeliveryError, extracts_of, pack_delivery, pack_extracts, unpack

RUN = gzip.decompress((Path(__file__).parents[2] / "data" / "verl-0.9.1.numpy2.nocolor.driver.log.gz").read_bytes())
HEAD: dict[str, Any] = {
    "agent": "node-7",
    "software": "0.1.0",
    "epoch": 1_700_000_000_000,
    "oldest": 1,
    "waiting": 1,
    "sent_at": 1_700_000_000.5,
    "offset_s": None,
    "sources": [],
}


def there_and_back(extracts: list[Extract]) -> list[Extract]:
    packed = pack_extracts(extracts)
    delivery = unpack(pack_delivery(HEAD, [(n, thinned, data) for n, (_, thinned, data) in enumerate(packed, start=1)]))
    return [one for shipment in delivery["shipments"] for one in extracts_of(shipment, "node-7")]


def rejoined(extracts: list[Extract]) -> list[Extract]:
    """Parts of one extract as one again."""
    whole: list[Extract] = []
    for one in extracts:
        if whole and (whole[-1].source, whole[-1].run, whole[-1].history) == (one.source, one.run, one.history):
            whole[-1] = replace(one, records=(*whole[-1].records, *one.records))
        else:
            whole.append(one)
    return whole


def renamed(extract: Extract) -> Extract:
    source = f"node-7:{extract.source}"
    records: list[Samples | Event] = []
    for record in extract.records:
        origin = record.origin._replace(source=source)
        records.append(
            record._replace(origin=origin) if isinstance(record, Samples) else replace(record, origin=origin)
        )
    return Extract(source, extract.run, tuple(records), extract.history)


def test_a_recorded_run_arrives_as_it_was_read() -> None:
    outcome = Gatherer().feed(Chunk("/logs/train.log", 3, 0, RUN, run="qwen", history_to=len(RUN) // 2), 0.0)
    assert sum(len(extract.records) for extract in outcome.extracts) > 300
    assert {extract.history for extract in outcome.extracts} == {True, False}
    there = rejoined(there_and_back(list(outcome.extracts)))
    assert [repr(extract) for extract in there] == [repr(renamed(extract)) for extract in outcome.extracts]


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
TEXT = st.text(st.characters(codec="utf-8"), max_size=50)
SCOPES = st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple)
TIMES = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
ORIGINS = st.builds(
    Origin,
    st.just("a.log"),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.builds(Writer, TEXT, st.integers(0, 2**31), TEXT),
    TEXT,
)
RECORDS = st.one_of(
    st.builds(
        Samples,
        ORIGINS,
        st.integers(0, 2**62),
        st.dictionaries(TEXT, NUMBERS, max_size=20),
        st.sampled_from([None, 3]),
        SCOPES,
        TIMES,
    ),
    st.builds(
        Event,
        ORIGINS,
        TEXT,
        st.dictionaries(TEXT, st.one_of(TEXT, st.integers(-(2**60), 2**60), st.floats(allow_nan=False)), max_size=5),
        st.sampled_from(["info", "warning", "critical"]),
        TEXT,
        SCOPES,
        TIMES,
    ),
)


@given(st.lists(RECORDS, max_size=5), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_record_arrives_as_it_was(records: list[Samples | Event], history: bool) -> None:
    extract = Extract("a.log", "r", tuple(records), history)
    expected = [repr(renamed(extract))] if records else []
    assert [repr(one) for one in there_and_back([extract])] == expected


def test_numbers_that_are_not_finite_arrive() -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.1}
    origin = Origin("a.log", 0, 9, Writer(), "step_metrics")
    (extract,) = there_and_back([Extract("a.log", "r", (Samples(origin, 1, values),))])
    (record,) = extract.records
    assert isinstance(record, Samples)
    assert repr(record.values) == repr(values)


def changed(**changes: Any) -> bytes:
    extract = {
        "source": "a.log",
        "run": "r",
        "history": False,
        "records": [{"kind": "k", "generation": 0, "end": 9, "writer": ["", 0, ""], "step": 1, "values": {"a": 1.0}}],
    }
    shipment = {"number": 1, "thinned": 0, "extracts": [extract]}
    delivery: dict[str, Any] = {"version": 1, **HEAD, "shipments": [shipment]}
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: Any = delivery
        for key in parents:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value
    return json.dumps(delivery).encode()


RECORD = "shipments__0__extracts__0__records__0"


def test_what_stands_unchanged_is_read() -> None:
    assert unpack(changed())["agent"] == "node-7"
    assert unpack(changed(colour="blue", **{f"{RECORD}__novelty": [1]}))["epoch"] == HEAD["epoch"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"version": 2}, "version"),
        ({"agent": ""}, "agent"),
        ({"agent": "a\nb"}, "agent"),
        ({"agent": "a" * 101}, "agent"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 2**64}, "epoch"),
        ({"epoch": True}, "epoch"),
        ({"sent_at": "now"}, "sent_at"),
        ({"sent_at": math.nan}, "sent_at"),
        ({"offset_s": math.inf}, "offset_s"),
        ({"shipments": [{"number": 1, "thinned": 0, "extracts": []}] * 2}, "shipments"),
        ({"shipments__0__number": 7, "oldest": 8}, "shipments"),
        ({"shipments__0__extracts__0__records": [{}] * 65}, "shipments.0.extracts.0.records"),
        ({"shipments": {}}, "shipments"),
        ({"shipments__0__number": 0}, "shipments.0.number"),
        ({"shipments__0__extracts__0__source": ""}, "shipments.0.extracts.0.source"),
        ({"shipments__0__extracts__0__run": "\u202eevil"}, "shipments.0.extracts.0.run"),
        ({f"{RECORD}__writer": ["", 0]}, "shipments.0.extracts.0.records.0.writer"),
        ({f"{RECORD}__end": 1.5}, "shipments.0.extracts.0.records.0.end"),
        ({f"{RECORD}__values": {"a": "1"}}, "shipments.0.extracts.0.records.0.values.a"),
        ({f"{RECORD}__values": {"a": None}}, "shipments.0.extracts.0.records.0.values.a"),
        ({f"{RECORD}__attributes": {"a": [1]}}, "shipments.0.extracts.0.records.0.attributes.a"),
        ({f"{RECORD}__severity": "fatal"}, "shipments.0.extracts.0.records.0.severity"),
    ],
)
def test_what_is_no_delivery_is_refused_with_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(DeliveryError, match=f"^{place}"):
        unpack(changed(**changes))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"version":1}', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(DeliveryError):
        unpack(body)


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(DeliveryError) as caught:
        unpack(changed(agent="secret" * 40))
    assert "secret" not in str(caught.value)


def test_instants_are_told_in_the_time_of_the_hub() -> None:
    origin = Origin("a.log", 0, 9, Writer(), "nvml")
    records = (Samples(origin, 1, {"a": 1.0}, at=1000.0), Samples(origin, 2, {"a": 1.0}))
    delivery = unpack(
        pack_delivery(HEAD, [(1, 0, packed.extracts) for packed in pack_extracts([Extract("a", "r", records)])])
    )
    (extract,) = extracts_of(delivery["shipments"][0], "n1", 90.0)
    assert [record.at for record in extract.records] == [1090.0, None]


def test_without_skew_an_instant_arrives_to_the_bit() -> None:
    record = Samples(Origin("a.log", 0, 9, Writer(), "nvml"), 1, {}, at=-0.0)
    (extract,) = there_and_back([Extract("a.log", "r", (record,))])
    assert [repr(one.at) for one in extract.records] == ["-0.0"]
