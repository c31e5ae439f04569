#!/usr/bin/env python3
"""Disciplines on an ideal serial line, simulated: the reference that no shaper is. serial.py
[SECONDS]

10 Mbit/s and 1538 bytes a full packet on the wire with the loads of aqm.py: UDP at 1.2 times the
rate, and one or four CUBIC streams (tcp.py) beside 50 small datagrams a second, with a round trip
of 20 ms. Times are in seconds.
"""

import heapq
import json
import statistics
import sys
from dataclasses import dataclass
from itertools import count

import tcp
from disciplines import DISCIPLINES, RATE, WIRE

PAYLOAD, OVERHEAD, ROUND_TRIP = 1472, 38, 0.02


@dataclass
class Packet:
    flow: str
    number: int
    size: int
    sent: float
    entered: float = 0.0


class World:
    """The events to come, in order of time and then of scheduling."""

    def __init__(self):
        self.now, self.due, self.order = 0.0, [], count()

    def at(self, when, deed, *about):
        heapq.heappush(self.due, (when, next(self.order), deed, about))

    def run(self, until):
        while self.due and self.due[0][0] <= until:
            self.now, _, deed, about = heapq.heappop(self.due)
            deed(*about)


class Line:
    """Transmits one packet at a time, and delivers it when it has left."""

    def __init__(self, world, discipline, deliver):
        self.world, self.discipline, self.deliver, self.busy, self.offered = (
            world,
            discipline,
            deliver,
            False,
            0,
        )

    def enter(self, packet):
        self.offered += 1
        self.discipline.enqueue(self.world.now, packet)
        if not self.busy:
            self.begin()

    def begin(self):
        packet = self.discipline.dequeue(self.world.now)
        self.busy = packet is not None
        if self.busy:
            self.world.at(self.world.now + packet.size * 8 / RATE, self.end, packet)

    def end(self, packet):
        self.deliver(packet)
        self.begin()


def overload(name, seconds, seed=1):
    """The figures of aqm.py under UDP at 1.2 times the rate."""
    total, received, world = round(seconds * 1.2 * RATE / 8 / WIRE), [], World()
    line = Line(
        world,
        DISCIPLINES[name](seed),
        lambda packet: received.append((packet.number, packet.sent, world.now)),
    )
    for number in range(total):
        sent = number * seconds / total
        world.at(sent, line.enter, Packet("udp", number, WIRE, sent))
    world.run(2 * seconds)
    late = [(left - sent) * 1e3 for number, sent, left in received if number > total / 3]
    kept = sum(number > total / 3 for number, *_ in received)
    return {
        "goodput": (len(received) - 1) * PAYLOAD * 8e-6 / (received[-1][2] - received[0][2]),
        "dropped": 100 * (1 - kept / (total - int(total / 3) - 1)),
        "marked": 0,
        **delays(late),
    }


def streams(name, seconds, number, seed=1):
    """The figures of aqm.py with so many CUBIC streams. The way back takes the whole round trip."""
    world, late, got = World(), [], []

    def deliver(packet):
        if packet.flow == "probe":
            late.append((packet.number, (world.now - packet.sent) * 1e3))
        else:
            got.append(world.now)
            receivers[packet.flow].receive(packet.number)

    line = Line(world, DISCIPLINES[name](seed), deliver)
    receivers = {}
    for index in range(number):
        sender = tcp.Sender(
            world,
            lambda segment, flow=f"tcp {index}": line.enter(Packet(flow, segment, WIRE, world.now)),
        )
        receivers[f"tcp {index}"] = tcp.Receiver(
            world, lambda *ack, to=sender: world.at(world.now + ROUND_TRIP, to.acknowledged, *ack)
        )
        # Not at the same time, and not the same in each seed.
        world.at(0.01 * index + 0.0007 * seed, sender.send)
    for step in range(seconds * 50):
        world.at(
            step / 50,
            lambda step=step: line.enter(Packet("probe", step, 100 + OVERHEAD, world.now)),
        )
    world.run(seconds)
    counted = [when for when in got if 2 <= when < seconds - 1]
    return {
        "goodput": len(counted) * tcp.SEGMENT * 8e-6 / (seconds - 3),
        "dropped": 100 * line.discipline.dropped / line.offered,
        "marked": 0,
        **delays([delay for step, delay in late if step > seconds * 50 / 3]),
    }


def delays(late):
    late = sorted(late)
    return {"p50": late[len(late) // 2], "p95": late[int(len(late) * 0.95)]}


def figures(name, load, seconds, rounds=3):
    """Medians of as many seeds."""
    rows = [
        (
            overload(name, seconds, seed)
            if load.startswith("udp")
            else streams(name, seconds, 1 if load.startswith("one") else 4, seed)
        )
        for seed in range(1, rounds + 1)
    ]
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


if __name__ == "__main__":
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    print(
        json.dumps(
            {
                name: {load: figures(name, load, length) for load in ("udp", "one", "four")}
                for name in DISCIPLINES
            },
            indent=1,
        )
    )
