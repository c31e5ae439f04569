"""What the experiments should give, in closed form. Rates are in Mbit/s, times in seconds."""

ETHERNET, IP, TCP, STAMPS = 38, 20, 20, 12
# What each message carries beside itself, with timestamps.
MESSAGE_HEADERS = ETHERNET + IP + TCP + STAMPS


def tcp_goodput(rate, stamps=True, mtu=1500):
    """Payload rate of full segments on a saturated link."""
    return rate * (mtu - IP - TCP - (STAMPS if stamps else 0)) / (mtu + ETHERNET)


def message_goodput(rate, size, stamps=True):
    """Payload rate of messages of `size` bytes, one a segment (Figure 3.8: 10·m/(m+78), with timestamps m+90)."""
    return rate * size / (size + ETHERNET + IP + TCP + (STAMPS if stamps else 0))


def sharing(size, starts, goodput):
    """Streams of `size` bytes that share `goodput` equally from their `starts` on: [(from, to, rate of each)], ends."""
    left = {index: size * 8 / 1e6 for index in range(len(starts))}
    time, phases, ends = min(starts), [], {}
    while left:
        active = [index for index in left if starts[index] <= time + 1e-9]
        coming = [start for index, start in enumerate(starts) if index in left and start > time + 1e-9]
        if not active:
            time = min(coming)
            continue
        rate = goodput / len(active)
        until = min([time + min(left[index] for index in active) / rate] + coming)
        phases.append((time, until, {index: rate for index in active}))
        for index in active:
            left[index] -= rate * (until - time)
            if left[index] < 1e-6:
                del left[index]
                ends[index] = until
        time = until
    return phases, [ends[index] for index in range(len(starts))]


def drop_tail(arrivals_ns, wire_bytes, rate_bit, slots):
    """Which of the packets that arrive at these times find room: one on the line, `slots` waiting."""
    step = wire_bytes * 8 * 1_000_000_000 // rate_bit
    done, taken = [], []
    for at in arrivals_ns:
        done = [end for end in done if end > at]
        room = len(done) <= slots
        taken.append(room)
        if room:
            done.append(max(done[-1] if done else 0, at) + step)
    return taken
