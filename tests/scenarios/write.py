"""Writes the logs and timelines of all scenarios: ``python -m tests.scenarios.write``.

What is to be told of each stands in its ``expected.yaml``, by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.scenarios import dying, ending, gone, stuck
from tests.scenarios.scene import Scene

HERE = Path(__file__).parent
SCENES: Mapping[str, Callable[[], Scene]] = {
    scene.__name__.replace("_", "-"): scene for part in (stuck, dying, gone, ending) for scene in part.SCENES
}


def main() -> None:
    """Rewrites the folders."""
    for name, scene in SCENES.items():
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        for file, text in scene().files():
            (folder / file).write_text(text)


if __name__ == "__main__":
    main()
