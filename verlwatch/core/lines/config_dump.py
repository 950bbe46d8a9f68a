"""The resolved configuration, pretty-printed before training: ``{'actor_rollout_ref': {'actor': {...``, row by row.

Source: verl ``trainer/main_ppo.py``, ``pprint(OmegaConf.to_container(config, resolve=True))`` in every release: 50 to
1,000 rows of the trainer process, the keys of each level in the order of the alphabet.  All rows have to be there: a
lost one would put what follows it under another key.
"""

from __future__ import annotations

from typing import Final

from verlwatch.core.lines import _config, _pprint
from verlwatch.core.lines._line import Fact, Line, Said, Take

NAME: Final = "config_dump"
NEEDLES: Final = (b"actor_rollout_ref",)

_HEAD = "{'actor_rollout_ref': {"


def parse(line: Line) -> Fact | Dump | None:
    """An event ``config`` with the dotted key of each value as an attribute."""
    if line.cut or line.from_rollout or not line.text.startswith(_HEAD):
        return None
    if len(line.text) > _pprint.LONGEST or not _pprint.is_row(line.text):
        return None
    dump = Dump()
    return dump.close() if dump.add(line.text) is Take.DONE else dump


class Dump:
    """The rows up to the bracket that closes the first one's."""

    LINES = 3000
    BYTES = 1 << 18  # of the source, with what others write meanwhile

    def __init__(self) -> None:
        self._rows: list[str] = []
        self._depth = 0

    def add(self, row: str) -> Take:
        """Takes a row of plain values."""
        self._rows.append(row)
        self._depth += _pprint.depth(row)
        return Take.DONE if self._depth == 0 else Take.TAKEN if 0 < self._depth <= _config.DEPTH else Take.ENDED

    def take(self, line: Line, said: Said | None) -> Take:
        """Rows are indented; what the process prints to stderr meanwhile is none."""
        if line.text.startswith(" ") and not line.cut and _pprint.is_row(line.text):
            return self.add(line.text)
        return Take.IGNORED if said is None else Take.ENDED

    def close(self) -> Fact | None:
        """None unless every bracket is closed."""
        tree = _pprint.value("\n".join(self._rows)) if self._depth == 0 else None
        if not isinstance(tree, dict):
            return None
        found = _config.attributes(_config.flat(tree))
        return Fact("config", found, excerpt=_HEAD) if found else None
