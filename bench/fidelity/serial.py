#!/usr/bin/env python3
"""Disciplines on an ideal serial line, simulated: the reference that no shaper is. serial.py
[SECONDS]

10 Mbit/s and 1538 bytes a packet on the wire, UDP at 1.2 times the rate, as in aqm.py. Written from
RFC 8289 (CoDel) and Floyd and Jacobson 1993 (RED), without a look at Windtunnel's own. Times are in
seconds.
"""

import json
import random
import sys
from collections import deque
from math import sqrt

RATE, WIRE, PAYLOAD = 10e6, 1538, 1472
SERVICE = WIRE * 8 / RATE
MTU = 1538


class DropTail:
    limit = 100

    def admits(self, now, queue, idle_since):
        return True

    def next(self, now, queue):
        return queue.popleft() if queue else None


class Codel(DropTail):
    limit = 1000
    target, interval = 0.005, 0.1

    def __init__(self):
        self.first_above, self.drop_next, self.count, self.last_count, self.dropping = (
            0.0,
            0.0,
            0,
            0,
            False,
        )

    def law(self, since):
        return since + self.interval / sqrt(self.count)

    def take(self, now, queue):
        """A packet, and whether it may be dropped."""
        if not queue:
            self.first_above = 0.0
            return None, False
        packet = queue.popleft()
        if now - packet[1] < self.target or len(queue) * WIRE <= MTU:
            self.first_above = 0.0
        elif self.first_above == 0.0:
            self.first_above = now + self.interval
        else:
            return packet, now >= self.first_above
        return packet, False

    def next(self, now, queue):
        packet, may = self.take(now, queue)
        if self.dropping:
            self.dropping = may
            while self.dropping and now >= self.drop_next:
                self.count += 1
                packet, may = self.take(now, queue)
                self.dropping = may
                if may:
                    self.drop_next = self.law(self.drop_next)
        elif may:
            packet, _ = self.take(now, queue)
            self.dropping = True
            delta = self.count - self.last_count
            self.count = delta if delta > 1 and now - self.drop_next < 16 * self.interval else 1
            self.drop_next = self.law(now)
            self.last_count = self.count
        return packet


class Red(DropTail):
    limit = 1000
    low, high, most, weight, typical = 30e3, 90e3, 0.1, 1 / 32, 1000

    def __init__(self):
        self.average, self.count, self.luck = 0.0, -1, random.Random(1)

    def admits(self, now, queue, idle_since):
        if idle_since is not None:
            self.average *= (1 - self.weight) ** ((now - idle_since) * RATE / 8 / self.typical)
        else:
            self.average += self.weight * (len(queue) * WIRE - self.average)
        if self.average < self.low:
            self.count = -1
            return True
        self.count += 1
        base = self.most * (self.average - self.low) / (self.high - self.low)
        spread = 1 - self.count * base
        if self.average >= self.high or spread <= base or self.luck.random() < base / spread:
            self.count = 0
            return False
        return True


DISCIPLINES = {"drop-tail": DropTail, "codel": Codel, "red": Red}


def line(discipline, arrivals):
    """What leaves the line, as (number, entered, left)."""
    queue, out, free, idle = deque(), [], 0.0, 0.0
    for number, now in enumerate(arrivals):
        while idle is None and free <= now:
            packet = discipline.next(free, queue)
            if packet is None:
                idle = free
            else:
                free += SERVICE
                out.append((*packet, free))
        if not discipline.admits(now, queue, idle):
            idle = None if idle is None else now
        elif idle is not None:
            free, idle = now + SERVICE, None
            out.append((number, now, free))
        elif len(queue) < discipline.limit:
            queue.append((number, now))
    return out


def overload(name, seconds):
    """The figures of aqm.py under UDP at 1.2 times the rate."""
    count = round(seconds * 1.2 * RATE / 8 / WIRE)
    heard = line(DISCIPLINES[name](), [number * seconds / count for number in range(count)])
    late = sorted((left - entered) * 1e3 for number, entered, left in heard if number > count / 3)
    goodput = (len(heard) - 1) * PAYLOAD * 8e-6 / (heard[-1][2] - heard[0][2])
    # What still waits at the end has not been dropped, and is heard in aqm.py: so many arrivals at
    # the end are left out.
    last = heard[-1][0]
    kept = sum(1 for number, *_ in heard if count / 3 < number <= last)
    dropped = 100 * (1 - kept / (last - int(count / 3)))
    return {
        "goodput": goodput,
        "dropped": dropped,
        "marked": 0,
        "p50": late[len(late) // 2],
        "p95": late[int(len(late) * 0.95)],
    }


if __name__ == "__main__":
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 12
    print(json.dumps({name: overload(name, length) for name in DISCIPLINES}, indent=1))
