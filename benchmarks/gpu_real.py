"""On a host with an NVIDIA GPU: the sampler's used memory beside nvidia-smi's.  They must be within 1 MiB.

Elsewhere it says that there is none.  While a card's memory changes the two cannot agree, so each is asked again, up to
ten times, until nvidia-smi says the same before and after.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from verlwatch.shell.gpu import SourceError
from verlwatch.shell.gpu.nvml import Nvml

TRIES = 10
MIB_PER_GIB = 1024


def shown() -> dict[str, int]:
    """Used MiB of each card, by its index, as nvidia-smi shows it."""
    command = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    rows = (line.split(", ") for line in printed.splitlines())
    return {index: int(used) for index, used in rows if used.strip().isdecimal()}


def main() -> int:
    source = Nvml()
    try:
        source.open(frozenset())
    except SourceError as error:
        print(f"no NVIDIA GPU can be read here: {error}")
        return 0
    if shutil.which("nvidia-smi") is None:
        print("there is no nvidia-smi to compare with")
        return 0
    sampled: dict[str, float] = {}
    before: dict[str, int] = {}
    for _ in range(TRIES):
        before = shown()
        cards = source.sample().cards
        sampled = {card.gpu: float(card.values["used_gb"]) * MIB_PER_GIB for card in cards if "used_gb" in card.values}
        if before == shown():
            break
    source.close()
    apart = {index: abs(sampled[index] - before[index]) for index in sampled.keys() & before.keys()}
    for index in sorted(apart, key=int):
        print(f"GPU {index}: sampled {sampled[index]:.2f} MiB, nvidia-smi {before[index]} MiB")
    if not apart:
        print("nvidia-smi and the sampler have no card in common")
        return 1
    print(f"farthest apart: {max(apart.values()):.2f} MiB")
    return int(max(apart.values()) > 1)


if __name__ == "__main__":
    sys.exit(main())
