"""A process that commits numbered outcomes for as long as it lives, and says which ones are committed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from verlwatch.core.types import Cursor, Message, Notification, Outcome, State, StepRow, Transition
from verlwatch.shell.store import Store


def numbered(n: int) -> Outcome:
    """The n-th outcome; each table tells n on its own."""
    message = Message("i", "opened", "r", "rule", "gen", "info", f"m{n}", "", n, n, 1.0, 1.0, 1.0)
    return Outcome(
        (Cursor("log", 1, n, n),),
        (StepRow("r", 1, n, float(n), {f"key/{k}": n * 1.1 for k in range(50)}),),
        (State("run", "r", 1, {"n": n}),),
        (Transition("opened", "i", "rule", "r", 1, "gen", n, n, 1.0, "info", "", n, 1.0, 1.0),),
        (Notification(f"key-{n}", "i", "slack", "opened", message),),
    )


async def main(state_dir: Path) -> None:
    """Goes on behind what is committed already."""
    store = await Store.open(state_dir)
    cursors = (await store.load(1)).cursors
    n = cursors[0].applied_to if cursors else 0
    while True:
        n += 1
        await store.commit(numbered(n), float(n))
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
