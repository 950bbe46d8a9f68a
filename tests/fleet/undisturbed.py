"""What is in a hub when nothing happens: files read at once, shipped and judged, by core and store alone."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.conftest import DATA
from tests.fleet.fleet import FILES
from verlwatch.core.engine import Engine
from verlwatch.core.gather import Gatherer
from verlwatch.core.settings import Settings
from verlwatch.core.types import Chunk, Extract, Outcome
from verlwatch.shell.fleet.wire import extracts_of, pack_delivery, pack_extracts, unpack
from verlwatch.shell.store import Store

LATER_S = 60.0
"""By then everything that may go on in the next line has been given up."""


def shipped(name: str, log: Path) -> list[Extract]:
    """What the hub makes of an agent's file."""
    run, file = FILES[name]
    text = gzip.decompress((DATA / file).read_bytes())
    gatherer = Gatherer()
    read = [gatherer.feed(Chunk(str(log), 0, 0, text, run=run), 0.0), gatherer.tick(LATER_S)]
    found: list[Extract] = []
    packed = pack_extracts(extract for outcome in read for extract in outcome.extracts)
    for number, (_, thinned, extracts) in enumerate(packed, 1):
        head = {
            "agent": name, "software": "", "epoch": 1, "oldest": number, "waiting": 1, "sent_at": 0.0, "offset_s": None,
            "sources": [],
        }  # fmt: skip
        (shipment,) = unpack(pack_delivery(head, [(number, thinned, extracts)]))["shipments"]
        found += extracts_of(shipment, name)
    return found


async def judge(folder: Path) -> set[tuple[str, str]]:
    """Leaves the hub's database in ``folder``, as if the logs lay beside it; ids and reasons of what is told."""
    told: set[tuple[str, str]] = set()
    engine = Engine(Settings(receivers=("hook",)))
    store = await Store.open(folder)
    for name in FILES:
        outcome: Outcome = engine.accept(shipped(name, folder.parent / f"{name}.log"), 0.0)
        told |= {(notification.dedup_key, notification.reason) for notification in outcome.notifications}
        await store.commit(outcome, 0.0)
    await store.close()
    return told
