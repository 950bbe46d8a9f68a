"""Ray has lost a node: ``The node with node id: 5ad7... and address: 10.0.0.3 ... has been marked dead because ...``.

Source: Ray ``gcs/gcs_server/gcs_node_manager.cc``, published to the driver (``WARNING worker.py:2037 -- ``) and logged
by the GCS; ``ip`` for ``address`` and no name of the node before 1.12.  The detector has missed heartbeats: the
machine, its network or its raylet is gone, and every actor on it with them.  The agent beside a raylet sees that first:

    Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL by the user or ...
    Raylet is terminated: ip=10.0.0.3, id=5ad7.... Termination is unexpected. ...                  up to 2.9

Source: Ray ``python/ray/_private/process_watcher.py``, before ``dashboard/agent.py``.
"""

from __future__ import annotations

import re
from typing import Final

from verlwatch.core.lines._heads import bare
from verlwatch.core.lines._line import Fact, Line, fault

NAME: Final = "node_died"
NEEDLES: Final = (b" has been marked dead ", b"terminate")  # of a raylet

_DEAD = re.compile(
    r"The node with node id:? ([0-9a-f]{16,80})(?: and (?:address|ip): (\S{1,64}))?(?: and node name: (\S{1,253}))? "
    r"has been marked dead because "
)
_TERMINATED = re.compile(
    r"Raylet is terminated(?:: ip=([\w.:]{1,64}?)(?:, id=([0-9a-f]{16,80}))?(?=[.,]? |\.?$))?[.: ]"
)
_MEANT = "Termination is graceful"


def parse(line: Line) -> Fact | None:
    """``node_id``, ``ip`` and, where it has a name of its own, ``host``."""
    if line.shows_samples:
        return None
    text = bare(line).text
    if terminated := _TERMINATED.match(f"{text} "):
        ip, node = terminated.groups()
        return fault(NAME, {"node_id": node, "ip": ip}) if _MEANT not in text else None
    found = _DEAD.match(text)
    if found is None:
        return None
    node, ip, name = found.groups()
    return fault(NAME, {"node_id": node, "ip": ip, "host": name if name != ip else None})
