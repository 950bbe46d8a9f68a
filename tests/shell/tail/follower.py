"""A process that follows logs with the real Tail and Store, and commits the lines it has read with its position.

Each commit is one row whose text holds the numbers of the new lines: nothing hides a line that comes twice.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.shell.tail.driver import Splitter, numbers
from verlwatch.core.types import Chunk, Outcome, Transition
from verlwatch.shell import _generation
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.inbox import Inbox
from verlwatch.shell.store import Store
from verlwatch.shell.tail import Following, Tail


async def main(state_dir: Path, log: str, linger_s: float) -> None:
    """Follows ``log`` until it is killed."""
    _generation.LINGER_S = linger_s
    store = await Store.open(state_dir)
    resume = {cursor.source: cursor for cursor in (await store.load(1)).cursors}
    inbox = Inbox()
    following = asyncio.ensure_future(
        Tail(Following({"run": (log,)}, poll_s=0.02), inbox, resume.values(), clock=SystemClock()).run()
    )
    sys.stdout.write("following\n")
    sys.stdout.flush()
    splitters: dict[str, Splitter] = {}
    while not following.done():
        for chunk in await inbox.get(4, timeout_s=0.2) or []:
            assert isinstance(chunk, Chunk)
            splitter = splitters.setdefault(chunk.source, Splitter(resume.get(chunk.source)))
            lines = " ".join(map(str, numbers(splitter.feed(chunk))))
            told = Transition("opened", lines, "", "", 1, "", 1, 1, 1.0, "info", "", 1, 1.0, 1.0)
            await store.commit(Outcome((splitter.cursor(chunk.source),), transitions=(told,)), 1.0)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
