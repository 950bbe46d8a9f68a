"""What a source has shown that is worth a number on a status page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Counters of one Reader, from its start on (a restart rereads a little).

    ``lines`` that hold a needle, or may end one that does; ``cut_lines`` lines over the limit, or let go for want of
    memory; ``broken`` messages on which a kind raised, with an escaped ``sample`` of the first; ``undecodable`` lines
    that are not UTF-8; ``nul`` bytes that are zero.
    """

    lines: int = 0
    cut_lines: int = 0
    broken: int = 0
    undecodable: int = 0
    nul: int = 0
    sample: str = ""
