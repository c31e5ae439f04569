"""A TCP stream for serial.py: CUBIC (RFC 9438), HyStart++ (RFC 9406) and RACK (RFC 8985).

Segments are numbered and full, and there is always one more to send. Every second one is
acknowledged, or after 40 ms, or at once while something is missing (RFC 5681), and each
acknowledgement names the newest (SACK). A segment is lost when one that was sent after it has
arrived, and three have arrived beyond the first that is missing or recovery has begun. The window
falls once for each window of losses, and what is in flight is kept to it (RFC 6675).

Linux's CUBIC differs: slow start ends by the older HyStart, the window falls by degrees (RFC 6937),
and acknowledgements are not delayed in the beginning.
"""

SEGMENT = 1448
INITIAL, LEAST = 10, 2


class Receiver:
    def __init__(self, world, acknowledge):
        self.world, self.acknowledge, self.next, self.beyond, self.held = (
            world,
            acknowledge,
            0,
            set(),
            0,
        )

    def receive(self, number):
        if number != self.next or self.beyond:
            self.beyond.add(number)
            while self.next in self.beyond:
                self.beyond.discard(self.next)
                self.next += 1
            self.beyond = {other for other in self.beyond if other > self.next}
            self.answer(number)
            return
        self.next += 1
        self.held += 1
        if self.held == 2:
            self.answer(number)
        else:
            self.world.at(self.world.now + 0.04, self.late, number, self.next)

    def late(self, number, expected):
        if self.held and self.next == expected:
            self.answer(number)

    def answer(self, number):
        self.held = 0
        self.acknowledge(self.next, number)


class Cubic:
    """The window in segments. RFC 9438, sections 4.2 to 4.9."""

    FACTOR, BETA = 0.4, 0.7
    ALPHA = 3 * (1 - BETA) / (1 + BETA)

    def __init__(self):
        self.window, self.threshold, self.hystart = INITIAL, float("inf"), HyStart()
        self.peak, self.prior, self.reno, self.epoch = 0.0, 0.0, 0.0, None

    def grow(self, now, acked, rtt):
        if self.window < self.threshold:
            self.window += self.hystart.share(acked)
            if self.hystart.ended:
                self.threshold = self.window
            return
        if self.epoch is None:
            self.epoch, self.reno = now, self.window
            self.peak = max(self.peak, self.window)
            self.until = ((self.peak - self.window) / self.FACTOR) ** (1 / 3)
        curve = self.FACTOR * (now - self.epoch + rtt - self.until) ** 3 + self.peak
        self.reno += (self.ALPHA if self.reno < self.prior else 1) * acked / self.window
        target = min(max(curve, self.window), 1.5 * self.window)
        self.window += (target - self.window) / self.window * acked
        self.window = max(self.window, self.reno)

    def fall(self):
        self.prior = self.window
        # Fast convergence: it leaves room for another stream when its own peak has fallen.
        self.peak = self.window * (1 + self.BETA) / 2 if self.window < self.peak else self.window
        self.window = self.threshold = max(LEAST, self.window * self.BETA)
        self.epoch = None


class HyStart:
    """Slow start that ends when the round trip grows. RFC 9406, section 4.2."""

    def __init__(self):
        self.end, self.samples, self.rounds, self.base, self.ended = 0, 0, 0, None, False
        self.last, self.now = float("inf"), float("inf")

    def share(self, acked):
        return acked if self.base is None else acked / 4

    def sample(self, rtt, acked, sent):
        if acked > self.end:
            self.end, self.last, self.now, self.samples = sent, self.now, float("inf"), 0
            if self.base is not None:
                self.rounds += 1
                self.ended = self.rounds >= 5
        self.now, self.samples = min(self.now, rtt), self.samples + 1
        if self.samples < 8 or self.last == float("inf"):
            return
        if self.base is None and self.now >= self.last + min(0.016, max(0.004, self.last / 8)):
            self.base, self.rounds = self.now, 0
        elif self.base is not None and self.now < self.base:
            self.base = None


class Sender:
    def __init__(self, world, transmit):
        self.world, self.transmit, self.control = world, transmit, Cubic()
        self.una, self.next, self.order, self.delivered = 0, 0, 0, -1
        self.flight = (
            {}
        )  # segment to (order of sending, time, whether again): neither arrived nor lost
        self.lost, self.arrived, self.recovery = set(), set(), None
        self.srtt, self.rttvar, self.timer, self.timeouts = None, 0.0, 0, 0

    def send(self):
        while len(self.flight) < int(self.control.window):
            again = bool(self.lost)
            segment = min(self.lost) if again else self.next
            self.lost.discard(segment)
            self.next += not again
            self.flight[segment] = (self.order, self.world.now, again)
            self.order += 1
            self.transmit(segment)
        self.arm()

    def acknowledged(self, upto, newest):
        """All before `upto` have arrived, and `newest` (SACK)."""
        gone = [segment for segment in self.flight if segment < upto] + (
            [newest] if newest >= upto and newest in self.flight else []
        )
        advance = upto > self.una
        if not gone and not advance:
            return
        rtt = None
        for segment in gone:
            order, when, again = self.flight.pop(segment)
            self.delivered = max(self.delivered, order)
            # Karn: a retransmitted segment gives no sample of the round trip. Nor does one whose
            # acknowledgement was late, hence the least.
            rtt = min(rtt or 1e9, self.world.now - when) if not again else rtt
        if newest >= upto:
            self.arrived.add(newest)
        self.una = max(self.una, upto)
        self.arrived = {segment for segment in self.arrived if segment >= self.una}
        self.lost = {
            segment for segment in self.lost if segment >= self.una and segment not in self.arrived
        }
        if rtt is not None:
            self.measure(rtt)
        self.judge()
        if self.recovery is None and self.srtt:
            self.control.grow(self.world.now, len(gone), self.srtt)
        self.send()

    def judge(self):
        """RACK without a reordering window, as nothing is reordered here."""
        if self.recovery is not None and self.una >= self.recovery:
            self.recovery = None
        if self.recovery is None and len(self.arrived) < 3:
            return
        late = [segment for segment, (order, *_) in self.flight.items() if order < self.delivered]
        if late and self.recovery is None:
            self.recovery = self.next
            self.control.fall()
        for segment in late:
            del self.flight[segment]
            self.lost.add(segment)

    def measure(self, rtt):
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt / 2
        self.rttvar += (abs(self.srtt - rtt) - self.rttvar) / 4
        self.srtt += (rtt - self.srtt) / 8
        if self.control.window < self.control.threshold:
            self.control.hystart.sample(rtt, self.una, self.next)

    def arm(self):
        """RFC 6298, with its least of one second."""
        self.timer += 1
        self.world.at(
            self.world.now + max(1.0, (self.srtt or 1) + 4 * self.rttvar), self.expire, self.timer
        )

    def expire(self, timer):
        if timer != self.timer or not self.flight:
            return
        self.timeouts += 1
        self.control.fall()
        self.control.window, self.recovery = 1, self.next
        self.lost |= set(self.flight)
        self.flight.clear()
        self.send()
