"""Reads the run folders of the experiments and compares them with the model. Nothing here runs or draws anything."""
import collections
import csv
import json
import math
import statistics
from pathlib import Path

import model

Row = collections.namedtuple("Row", "experiment quantity asked seen unit error bound met")
LINK = 10.0  # Mbit/s


class Run:
    """One run folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.report = json.loads((self.folder / "run.json").read_text())
        self.said = collections.defaultdict(list)
        for file in sorted(self.folder.glob("nodes/*/stdout*")):
            for line in file.read_text().splitlines():
                if line.startswith("{"):
                    fields = json.loads(line)
                    self.said[fields["what"]].append({"node": file.parent.name, **fields})

    def latest_ms(self):
        """How late the latest packet was, as the run itself says."""
        return self.report["lateness"]["max_ns"] / 1e6

    def taken(self):
        """The part of the processors' time that the hypervisor took from the machine."""
        return self.report["machine"]["stolen_ns"] / (self.report["machine"]["cpus"] * self.report["elapsed_ns"])

    def dropped(self):
        """Drops by link, direction and reason."""
        return {f"{link['link']} {link['direction']}": link["dropped_packets"] for link in self.report["links"]
                if any(link["dropped_packets"].values())}

    def streams(self):
        """The received streams by label, in the order of their first bytes."""
        return sorted(self.said["stream"], key=lambda stream: stream["first_ns"])


def percentile(values, share):
    """The least value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def rates(stream, start_ns, width_ns, count):
    """Mbit/s of a stream in `count` intervals of `width_ns` after `start_ns`; a bin belongs in parts to its neighbours."""
    out, size = [0.0] * count, stream["bin_ns"]
    for key, amount in stream["bins"]:
        low = (key * size - start_ns) / width_ns
        high = low + size / width_ns
        for index in range(max(0, math.floor(low)), min(count, math.ceil(high))):
            part = (min(high, index + 1) - max(low, index)) / (high - low)
            out[index] += amount * part * 8e3 / width_ns
    return out


def off(seen, asked):
    return (seen - asked) / asked


def compare(name, quantity, asked, seen, unit, bound, relative=True):
    error = off(seen, asked) if relative else seen - asked
    shown = f"{100 * error:+.2f} %" if relative else f"{error:+.3f} {unit}"
    limit = f"{100 * bound:g} %" if relative else f"{bound:g} {unit}"
    return Row(name, quantity, asked, seen, unit, shown, limit, abs(error) <= bound)


def measured(name, quantity, seen, unit, bound=None):
    """A figure without a model, or with an upper bound only."""
    return Row(name, quantity, None, seen, unit, "", "" if bound is None else f"≤ {bound:g} {unit}", bound is None or seen <= bound)


def latency(name, run, bounds):
    rows, series = [], {}
    for said in sorted(run.said["rpc"], key=lambda said: int(said["node"].split("-")[1])):
        asked = int(said["node"].split("-")[1])
        times = [time / 1e6 for time in said["times_ns"]][1:]
        series[asked] = times
        greatest = bounds["rtt_p99_ms"] + 2 * bounds["forgiven"] * run.latest_ms()
        for label, share, bound in (("p50", 0.5, bounds["rtt_p50_ms"]), ("p99", 0.99, greatest)):
            rows.append(compare(name, f"RTT {asked} ms, {label} of {len(times)}", asked, percentile(times, share), "ms", bound, False))
    return rows, series


def bandwidth(name, run, bounds):
    stream = run.streams()[0]
    seconds = int((stream["last_ns"] - stream["first_ns"]) / 1e9)
    bins = rates(stream, stream["first_ns"], 1e9, seconds)
    steady = bins[1:]
    asked = model.tcp_goodput(LINK)
    rows = [compare(name, "goodput, mean", asked, statistics.mean(steady), "Mbit/s", bounds["goodput"]),
            measured(name, "goodput, σ of 1 s bins", 100 * statistics.pstdev(steady) / asked, "%", bounds["sigma"]),
            measured(name, "drops", sum(sum(drops.values()) for drops in run.dropped().values()), "packets")]
    return rows, {"goodput": [(index + 0.5, value) for index, value in enumerate(bins)]}


def window(name, run, bounds):
    stream = run.streams()[0]
    bins = rates(stream, stream["first_ns"] + 2_000_000_000, 1e9, int((stream["last_ns"] - stream["first_ns"]) / 1e9) - 2)
    rtt = 0.100 + 1538 * 8 / 10e6 + 1538 * 8 / 100e6 + 2 * 90 * 8 / 10e6
    return [compare(name, "64 KB window / 100 ms", 65535 * 8 / rtt / 1e6, statistics.mean(bins), "Mbit/s", bounds["window"])], {}


def sharing(name, run, bounds):
    """Plateaus and ends of three streams. With drop-tail only the sum is the model's; the rest has no bound."""
    streams = run.streams()
    began = {said["label"]: said["began_ns"] for said in run.said["sent"]}
    origin = min(began.values())
    starts = [(began[stream["label"]] - origin) / 1e9 for stream in streams]
    size = streams[0]["bytes"]
    goodput = model.tcp_goodput(LINK)
    phases, ends = model.sharing(size, starts, goodput)
    fair = name.endswith(("-fq", "-paths"))
    rows = []
    for number, (low, high, shares) in enumerate(phases, 1):
        # A stream needs a moment to find its share, and what a receiver held back behind a loss belongs to the time before:
        # two seconds, or of a short phase two fifths, are left out. A phase that is hardly longer has no bound.
        skip = min(2.0, (high - low) / 2.5)
        for index, share in shares.items():
            low_ns, width = origin + (low + skip) * 1e9, (high - low - skip - 0.1) * 1e9
            seen = rates(streams[index], low_ns, width, 1)[0]
            label = f"phase {number}, stream {index + 1}"
            rows.append(compare(name, label, share, seen, "Mbit/s", bounds["plateau"]) if fair and high - low > 1.5
                        else measured(name, label, seen, "Mbit/s"))
    for index, stream in enumerate(streams):
        end = (stream["last_ns"] - origin) / 1e9
        label = f"stream {index + 1} ends"
        rows.append(compare(name, label, ends[index], end, "s", bounds["ends"]) if fair else measured(name, label, end, "s"))
    rows.append(compare(name, "last end", max(ends), max((s["last_ns"] - origin) / 1e9 for s in streams), "s", bounds["sum"]))
    count = int((max(s["last_ns"] for s in streams) - origin) / 1e9)
    each = [rates(stream, origin, 1e9, count) for stream in streams]
    total = [sum(values) for values in zip(*each)][1:]
    rows.append(compare(name, "sum, mean of 1 s bins", goodput, statistics.mean(total), "Mbit/s", bounds["sum"]))
    for index, stream in enumerate(streams):
        inside = [v for second, v in enumerate(each[index]) if starts[2] + 1 <= second < min(s["last_ns"] - origin for s in streams) / 1e9 - 1]
        if inside:
            rows.append(measured(name, f"stream {index + 1} while three share: mean", statistics.mean(inside), "Mbit/s"))
            rows.append(measured(name, f"stream {index + 1} while three share: σ", statistics.pstdev(inside), "Mbit/s"))
    share_from, share_to = starts[2] + 2, min(s["last_ns"] - origin for s in streams) / 1e9 - 1
    for number, seen in carried(run, len(streams), share_from, share_to).items():
        if len(seen) > 1 and any(seen):
            sigma = 100 * statistics.pstdev(seen) / statistics.mean(seen)
            rows.append(measured(name, f"stream {number} on its own link while three share: σ of {len(seen)} s", sigma, "%",
                             bounds["sigma"] if name.endswith("-paths") else None))
    lines = {f"stream {index + 1}": [(second + 0.5, value) for second, value in enumerate(values)] for index, values in enumerate(each)}
    return rows, {"lines": lines, "phases": phases, "ends": ends}


def carried(run, count, low, high):
    """By stream, Mbit/s of the wire that left the link of that stream alone in each whole second between two times after the first
    stream's start. What a receiver reads comes in leaps where TCP lost something; what the network gives it does not."""
    begun = min(event["at_ns"] for event in all_events(run) if event["event"] == "program-started" and "stream" in event["argv"]) / 1e9
    # An interval without a row was idle.
    whole = range(math.ceil(low), math.floor(high))
    seconds = {number: collections.Counter({second: 0 for second in whole}) for number in range(1, count + 1)}
    with open(run.folder / "links.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            # A row is of the 100 ms before its time.
            second = math.floor(float(row["time_s"]) - 0.05 - begun)
            number = owner(row["direction"], count)
            if number and low <= second and second + 1 <= high:
                seconds[number][second] += int(row["delivered_wire_bytes"]) * 8 / 1e6
    return {number: list(values.values()) for number, values in seconds.items()}


def owner(direction, count):
    """The number of the stream that has this direction of a link for itself; None if none has."""
    own = (number for number in range(1, count + 1) if direction.startswith(f"client-{number}-") or direction.endswith(f"-server-{number}"))
    return next(own, None)


def overhead(name, run, bounds):
    """What messages of each size make of what the line carried; and of its rate, where the sender is sure to have had a processor."""
    rows, points, line, total = [], [], Line(run, "left-right"), 0
    streams = sorted(run.said["stream"], key=lambda stream: stream["first_ns"])
    begun = streams[0]["first_ns"] / 1e9 - line.begun()
    for stream in streams:
        size = int(stream["label"])
        total += stream["bytes"] / size * (size + model.MESSAGE_HEADERS)
        # From half a second on, to the last whole bin.
        first, count = stream["first_ns"] + 500_000_000, int((stream["last_ns"] - stream["first_ns"]) / 1e8) - 6
        seen = rates(stream, first, count * 1e8, 1)[0]
        points.append((size, seen))
        low = first / 1e9 - begun
        rate = line.mean(low, low + count / 10)
        asked = model.message_goodput(rate, size)
        rows.append(compare(name, f"{size}-byte messages in {rate:.2f} Mbit/s", asked, seen, "Mbit/s", bounds["messages"]))
        if bounds["full_line"]:
            rows.append(compare(name, f"{size}-byte messages", model.message_goodput(LINK, size), seen, "Mbit/s", bounds["full_line"]))
    rows.append(compare(name, "wire bytes of all messages", total, line.total(), "B", bounds["wire_bytes"]))
    return rows, {"goodput": sorted(points)}


class Line:
    """What a direction of a link carried, by the samples of the run: each is of the 100 ms before its time."""

    def __init__(self, run, direction):
        with open(run.folder / "links.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["direction"] == direction]
        self.samples = [(float(row["time_s"]), int(row["delivered_wire_bytes"])) for row in rows]

    def begun(self):
        """When the first sample with more than a connection's set-up began: to 100 ms the time of the first message."""
        return next(time for time, carried in self.samples if carried > 1000) - 0.1

    def mean(self, low, high):
        """Mbit/s between two times; a sample belongs in parts to the neighbours of a bound."""
        parts = ((max(0.0, min(high, time) - max(low, time - 0.1)) / 0.1, carried) for time, carried in self.samples)
        return sum(part * carried for part, carried in parts) * 8e-6 / (high - low)

    def total(self):
        """Bytes of the wire."""
        return sum(carried for _, carried in self.samples)


def received(run, node):
    return next(said["number_sent_received_ns"] for said in run.said["received"] if said["node"] == node)


def faults(name, run, bounds):
    """When each change was seen, counted from the first one, which is taken as exact."""
    beats = received(run, "ear")
    planned = [event for event in events(run) if event["event"] in ("link-state", "partitioned", "healed", "link-set")]
    gaps = [(before, after) for before, after in zip(beats, beats[1:]) if after[0] - before[0] > 20]
    steps = jumps(beats)
    # A datagram that comes 1 ms after a change is the first that can show it; sent times mark the entry of the first link.
    seen = [gaps[0][0][1], gaps[0][1][1], gaps[1][0][1], gaps[1][1][1]] + [beat[1] for beat in steps]
    times = sorted({event["intended_ns"] for event in planned})
    labels = ["link down", "link up", "partition", "heal", "latency 3 to 40 ms", "latency 2 to 22 ms"]
    rows, bound = [measured(name, "changes seen", len(seen), "")], bounds["change_ms"] + bounds["forgiven"] * run.latest_ms()
    for label, at, intended in zip(labels, seen, times):
        rows.append(compare(name, f"{label}, after the first", (intended - times[0]) / 1e6, (at - seen[0]) / 1e6, "ms", bound, False))
    return rows, {"delay": [((sent - beats[0][1]) / 1e9, (at - sent) / 1e6) for _, sent, at in beats]}


def jumps(beats, wide=200, least_ns=10_000_000):
    """The first datagrams after each rise of the delay that lasts for `wide` of them: a pause of the machine is shorter."""
    delays = [at - sent for _, sent, at in beats]
    found, index = [], wide
    while index < len(beats) - wide:
        if min(delays[index:index + wide]) > statistics.median(delays[index - wide:index]) + least_ns:
            found.append(beats[index])
            index += 2 * wide
        index += 1
    return found


def events(run):
    """What was planned and happened, in order."""
    return [event for event in all_events(run) if event.get("intended_ns") is not None]


def all_events(run):
    return list(map(json.loads, (run.folder / "events.jsonl").read_text().splitlines()))


def loss_jitter(name, run, bounds):
    sent = {said["node"]: said["count"] for said in run.said["beat"]}
    count = sent["mouth"]
    lost = count - len(received(run, "ear"))
    chance = 1 - (1 - 0.01) * (1 - 0.02)
    three = 3 * math.sqrt(count * chance * (1 - chance))
    rows = [compare(name, f"lost of {count}", count * chance, lost, "packets", round(three), False)]
    delays = sorted((at - begun) / 1e6 for _, begun, at in received(run, "ear-2"))
    floor = bounds["floor_ms"]
    distance = max(max(abs((index + 1) / len(delays) - uniform(delay)), abs(index / len(delays) - uniform(delay)))
                   for index, delay in enumerate(delays))
    # 1.63/√n is the 1 % bound of the Kolmogorov–Smirnov test; the path's own floor shifts a uniform of 20 ms by floor/20.
    rows.append(measured(name, "jitter: KS distance to 10 to 30 ms", distance, "", round(1.63 / math.sqrt(len(delays)) + floor / 20, 4)))
    return rows, {"jitter": delays}


def uniform(delay):
    return min(1.0, max(0.0, (delay - 10) / 20))


def queue(name, run, bounds):
    beats = received(run, "ear")
    got = [number for number, *_ in beats]
    arrivals = next(said["sent_ns"] for said in run.said["beat"])
    asked = sum(model.drop_tail(arrivals, 1538, 10_000_000, 100))
    return [compare(name, "of 300 at once into 100 slots", asked, len(got), "packets", bounds["slots"], False)], {}


def rtt_share(name, run, bounds):
    sent = {said["label"]: said["began_ns"] for said in run.said["sent"]}
    origin = min(sent.values())
    streams = {stream["label"]: stream for stream in run.streams()}
    asked, rows = model.tcp_goodput(2), []
    for label, low, high in (("before n0 to n5", 5, 19), ("before n3 to n5", 30, 99), ("with n3 to n5", 110, 178)):
        width = (high - low) * 1e9
        near = rates(streams["n0-n2"], origin + low * 1e9, width, 1)[0]
        far = rates(streams["n0-n5"], origin + low * 1e9, width, 1)[0]
        rows.append(measured(name, f"{label}: n0 to n2 (SplayNet: {2.0 if low == 5 else 1.5})", near * 2 / asked, "Mbit/s of the link"))
        rows.append(measured(name, f"{label}: n0 to n5 (SplayNet: {0.0 if low == 5 else 0.5})", far * 2 / asked, "Mbit/s of the link"))
        rows.append(compare(name, f"{label}: used of the link", 2, (near + far) * 2 / asked, "Mbit/s of the link", bounds["share_sum"]))
    lines = {label: [(second + 0.5, value) for second, value in enumerate(rates(stream, origin, 1e9, 182))] for label, stream in streams.items()}
    return rows, {"lines": lines}


READERS = {"latency": latency, "bandwidth": bandwidth, "window": window, "overhead": overhead, "faults": faults, "loss-jitter": loss_jitter,
           "queue": queue, "rtt-share": rtt_share}


def read(name, run, bounds):
    reader = sharing if name.startswith("sharing") else READERS[name]
    return reader(name, run, bounds)
