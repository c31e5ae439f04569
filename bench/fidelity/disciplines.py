"""Queue disciplines as their papers and RFCs have them, in floating point, for serial.py; written
without a look at Windtunnel's own.

CoDel from RFC 8289, FQ-CoDel from RFC 8290, PIE from RFC 8033 with its appendices, RED from Floyd
and Jacobson 1993, figure 2. Times are in seconds. A discipline has `enqueue(now, packet)`, which is
false for a drop, and `dequeue(now)`, which is None when it is empty; `dropped` counts.
"""

import random
from collections import deque
from math import ceil, sqrt

RATE, WIRE = 10e6, 1538  # bit/s; a full packet's bytes on the line


class DropTail:
    limit = 100

    def __init__(self, seed=1):
        self.queue, self.bytes, self.dropped, self.random = deque(), 0, 0, random.Random(seed)

    def admits(self, now):
        return True

    def enqueue(self, now, packet):
        if len(self.queue) >= self.limit or not self.admits(now):
            self.dropped += 1
            return False
        packet.entered = now
        self.queue.append(packet)
        self.bytes += packet.size
        return True

    def pop(self):
        packet = self.queue.popleft()
        self.bytes -= packet.size
        return packet

    def dequeue(self, now):
        return self.pop() if self.queue else None


class Codel(DropTail):
    limit = 1000
    target, interval = 0.005, 0.1

    def __init__(self, seed=1):
        super().__init__(seed)
        self.first_above, self.drop_next, self.count, self.last_count, self.dropping = (
            0.0,
            0.0,
            0,
            0,
            False,
        )

    def law(self, since):
        return since + self.interval / sqrt(self.count)

    def take(self, now):
        """A packet, and whether it may be dropped."""
        if not self.queue:
            self.first_above = 0.0
            return None, False
        packet = self.pop()
        if now - packet.entered < self.target or self.bytes <= WIRE:
            self.first_above = 0.0
        elif self.first_above == 0.0:
            self.first_above = now + self.interval
        else:
            return packet, now >= self.first_above
        return packet, False

    def dequeue(self, now):
        packet, may = self.take(now)
        if self.dropping:
            self.dropping = may
            while self.dropping and now >= self.drop_next:
                self.count += 1
                self.dropped += 1
                packet, may = self.take(now)
                self.dropping = may
                if may:
                    self.drop_next = self.law(self.drop_next)
        elif may:
            self.dropped += 1
            packet, _ = self.take(now)
            self.dropping = True
            delta = self.count - self.last_count
            self.count = delta if delta > 1 and now - self.drop_next < 16 * self.interval else 1
            self.drop_next = self.law(now)
            self.last_count = self.count
        return packet


class FqCodel:
    """A queue for each flow; there are fewer flows here than queues, so that no two share one."""

    limit, quantum = 1000, WIRE

    def __init__(self, seed=1):
        self.flows, self.deficit, self.new, self.old, self.lost = {}, {}, deque(), deque(), 0

    @property
    def dropped(self):
        return self.lost + sum(flow.dropped for flow in self.flows.values())

    def enqueue(self, now, packet):
        flow = self.flows.setdefault(packet.flow, Codel())
        if packet.flow not in self.new and packet.flow not in self.old:
            self.new.append(packet.flow)
            self.deficit[packet.flow] = self.quantum
        flow.limit = self.limit + 1
        flow.enqueue(now, packet)
        if sum(len(flow.queue) for flow in self.flows.values()) > self.limit:
            # Section 4.1: up to half of the fattest queue, 64 packets at the most, from its head.
            fattest = max(self.flows.values(), key=lambda flow: flow.bytes)
            for _ in range(min(64, ceil(len(fattest.queue) / 2))):
                fattest.pop()
                self.lost += 1
        return True

    def dequeue(self, now):
        while self.new or self.old:
            lane = self.new or self.old
            name = lane[0]
            if self.deficit[name] <= 0:
                self.deficit[name] += self.quantum
                lane.popleft()
                self.old.append(name)
                continue
            packet = self.flows[name].dequeue(now)
            if packet is None:
                lane.popleft()
                if lane is self.new:
                    self.old.append(name)
                continue
            self.deficit[name] -= packet.size
            return packet
        return None


class Pie(DropTail):
    limit = 1000
    target, update, burst = 0.015, 0.015, 0.15
    alpha, beta = 0.125, 1.25
    scale = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))

    def __init__(self, seed=1):
        super().__init__(seed)
        self.chance, self.sum, self.before, self.allowance, self.due = (
            0.0,
            0.0,
            0.0,
            0.0,
            self.update,
        )

    def delay(self):
        """What waits, at the line's rate: the RFC's estimate of it (section 5.2) is not needed."""
        return self.bytes * 8 / RATE

    def updates(self, now):
        while self.due <= now:
            self.due += self.update
            delay = self.delay()
            change = self.alpha * (delay - self.target) + self.beta * (delay - self.before)
            change /= next((by for below, by in self.scale if self.chance < below), 1)
            self.chance += min(change, 0.02) if self.chance >= 0.1 else change
            if delay == 0 and self.before == 0:
                self.chance *= 0.98
            self.chance = min(1.0, max(0.0, self.chance))
            self.before = delay
            self.allowance = max(0.0, self.allowance - self.update)

    def admits(self, now):
        self.updates(now)
        calm = self.before < self.target / 2
        if self.chance == 0 and calm and self.delay() < self.target / 2:
            self.allowance = self.burst
        if self.allowance > 1e-9 or calm and self.chance < 0.2 or self.bytes <= 2 * WIRE:
            return True
        # De-randomisation.
        self.sum = self.sum + self.chance if self.chance else 0.0
        if self.sum < 0.85 or self.sum < 8.5 and self.random.random() >= self.chance:
            return True
        self.sum = 0.0
        return False

    def dequeue(self, now):
        self.updates(now)
        return super().dequeue(now)


class Red(DropTail):
    limit = 1000
    low, high, most, weight, typical = 30e3, 90e3, 0.1, 1 / 32, 1000

    def __init__(self, seed=1):
        super().__init__(seed)
        self.average, self.count, self.idle = 0.0, -1, 0.0

    def admits(self, now):
        if self.idle is not None:
            self.average *= (1 - self.weight) ** ((now - self.idle) * RATE / 8 / self.typical)
            self.idle = now
        else:
            self.average += self.weight * (self.bytes - self.average)
        if self.average < self.low:
            self.count = -1
            return True
        self.count += 1
        base = self.most * (self.average - self.low) / (self.high - self.low)
        spread = 1 - self.count * base
        if self.average >= self.high or spread <= base or self.random.random() < base / spread:
            self.count = 0
            return False
        return True

    def enqueue(self, now, packet):
        stays = super().enqueue(now, packet)
        self.idle = None if stays else self.idle
        return stays

    def dequeue(self, now):
        packet = super().dequeue(now)
        self.idle = now if packet is None else None
        return packet


DISCIPLINES = {"drop-tail": DropTail, "codel": Codel, "fq-codel": FqCodel, "pie": Pie, "red": Red}
