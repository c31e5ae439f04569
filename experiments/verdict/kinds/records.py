"""Evidence that has gaps: what programs sent and got, beside what records and captures hold."""

import json
import os
import struct
import subprocess
import time

import packets
from probe import read
from trial import Trial, Truth

PROBES = 2000


def recorded(chance, option, count, disturb=None):
    """Probes in a recorded run; `count` says how many of them a source holds, as (held, sent or come)."""
    size = chance.randrange(100, 1400)
    network = packets.network(count=PROBES, spacing_ns=chance.randrange(200_000, 900_000), size=size)
    with Trial(network, *option) as trial:
        trial.wait_for_begin()
        if disturb:
            disturb(trial)
        report = trial.finish()
        if report is None:
            return None, Truth(None, "no report")
        return judged(report, *count(trial, size))


def judged(report, held, was):
    """Only what the verdict says of the evidence is judged here: `incomplete`."""
    verdict = report["verdict"]
    verdict["faithful"] = not verdict.get("incomplete")
    verdict["exit_code"] = 0
    return report, Truth(held != was, f"{held} of {was} are there")


def exported(trial, layer):
    """The records of a layer, one a line of JSON."""
    command = [os.environ["WINDTUNNEL"], "records", "export", "--format", "jsonl", "--layer", layer, str(trial.run)]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def of_engine(trial, size):
    """The records of deliveries, by the numbers that the receiver has read."""
    held = {row["offset"] for row in exported(trial, "engine")
            if row["kind"] == "delivered" and row.get("protocol") == "udp" and row["length"] == size - 28}
    return len(held), len(read(trial.folder / "came"))


def of_calls(trial, size):
    """The records of calls that sent a probe, by how often the program called."""
    held = [row for row in exported(trial, "calls") if row["call"] == "send" and row["result"] == size - 28]
    return len(held), PROBES


def captured(trial, size):
    """The frames of UDP in the capture at the receiver, read by a reader of our own (pcapng, enhanced packet blocks)."""
    data, at, held = (trial.run / "captures/b.pcapng").read_bytes(), 0, 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            frame = data[at + 28:at + 28 + struct.unpack_from("<I", data, at + 20)[0]]
            held += frame[12:14] == b"\x08\x00" and frame[23] == 17 and len(frame) >= 14 + size
        at += length
    return held, len(read(trial.folder / "came"))


def stopped(chance):
    """The run's process stands still a few times."""

    def disturb(trial):
        for _ in range(chance.randrange(1, 4)):
            time.sleep(chance.uniform(0.02, 0.2))
            trial.stop_for([trial.process.pid], chance.uniform(0.02, 0.3))

    return disturb


def engine_records(chance):
    """Each packet of a recorded run is in the records."""
    return recorded(chance, ["--record=engine"], of_engine)


def engine_records_while_stopped(chance):
    """The same, while the run's process stands still now and then."""
    return recorded(chance, ["--record=engine"], of_engine, stopped(chance))


def call_records(chance):
    """Each call that sent a packet is in the records."""
    return recorded(chance, ["--record=calls"], of_calls)


def call_records_while_stopped(chance):
    """Programs go on to call while the run's process, which takes their records, stands still."""
    return recorded(chance, ["--record=calls"], of_calls, stopped(chance))


def capture_while_stopped(chance):
    """Each frame is in the capture of a node, or the verdict says that some are not."""
    return recorded(chance, ["--pcap", "b"], captured, stopped(chance))


def small_records(chance):
    """`max` of the records is less than the run makes: they end early."""
    key = f"record: {{layers: [engine], max: {chance.randrange(64, 200)}KB}}\n"
    with Trial(key + packets.network(count=4 * PROBES, spacing_ns=100_000)) as trial:
        return judged(trial.finish(), *of_engine(trial, 200))


KINDS = [engine_records, engine_records_while_stopped, call_records, call_records_while_stopped, capture_while_stopped, small_records]
