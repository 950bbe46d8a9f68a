"""What it costs to sample 64 GPUs every second: NVML's real binding over a driver that is made up, to events.

The made-up driver is Python as well and counts among the cost; a real one costs its own time in the kernel instead.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes.nvml import GIB, FakeNvml, cards, loaded
from verlwatch.shell.gpu._choice import Choice
from verlwatch.shell.gpu._processes import CardProcesses
from verlwatch.shell.gpu._seen import sample_event
from verlwatch.shell.gpu.nvml import Nvml

CARDS = 64
SAMPLES = 200


def main() -> None:
    driver = FakeNvml(*cards(CARDS))
    for number, card in enumerate(driver.cards):
        card.processes = [(1_000_000 + number, 20 * GIB), (2_000_000 + number, 4 * GIB)]
    with loaded(driver):
        at = 0.0
        nvml = type("Sampled", (Nvml,), {"__init__": lambda self: Nvml.__init__(self, lambda: at)})
        choice, processes = Choice([nvml], lambda: at), CardProcesses(lambda: at)
        choice()
        calls, begun = driver.calls, time.process_time()
        for _ in range(SAMPLES):
            at += 1.0
            sample = choice().sample
            who = {one.pid: processes.who(one.pid) for card in sample.cards for one in card.processes}
            events = [sample_event(card, who, 0.0, "host") for card in sample.cards]
        spent = (time.process_time() - begun) / SAMPLES
        assert len(events) == CARDS
        print(f"{CARDS} cards, {(driver.calls - calls) / SAMPLES / CARDS:.0f} calls each")
        print(f"{1000 * spent:.2f} ms a sample: {100 * spent:.2f} % of a core at one a second")
        choice.close()


if __name__ == "__main__":
    main()
