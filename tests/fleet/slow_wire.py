"""A wire that is long and loses frames: carries them between two interfaces, later, and not all of them.

    python -I -S slow_wire.py INTERFACE INTERFACE DELAY_S LOSS SEED

What `tc netem` does in kernels that have it; this works in every network namespace.  Frames go on with the header in
which the kernel keeps what it has still to do for them (checksums, segments), so that they arrive as they would have.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time
from contextlib import suppress
from itertools import count

ALL_PROTOCOLS = socket.htons(3)
SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/if_packet.h
LARGEST = 1 << 17


def opened(interface: str) -> socket.socket:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, ALL_PROTOCOLS)
    wire.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    wire.bind((interface, 0))
    return wire


def main(first: str, second: str, delay_s: float, loss: float, seed: int) -> None:
    ends = [opened(first), opened(second)]
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    chance = random.Random(seed)
    on_the_way: list[tuple[float, int, socket.socket, bytes]] = []
    number = count()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        wait_s = max(0.0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for end in select.select(ends, [], [], wait_s)[0]:
            frame, (_, _, kind, *_) = end.recvfrom(LARGEST)
            if kind != socket.PACKET_OUTGOING and chance.random() >= loss:
                heapq.heappush(on_the_way, (time.monotonic() + delay_s, next(number), other[end], frame))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, _, end, frame = heapq.heappop(on_the_way)
            with suppress(OSError):  # the interface is down: lost, as on any wire
                end.send(frame)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
