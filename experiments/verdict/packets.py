"""The truth of packets: probes between two nodes, stamped by the kernel where they leave and where they come."""

import sys

from probe import read
from trial import PROBE, Truth

# What the path takes beside the emulation: the kernel's work at both ends of two veth pairs.
PATH_NS = 300_000
LATENCY_MS = 20


def network(count=1000, spacing_ns=2_000_000, size=200, links=None, nodes=""):
    """Two nodes, a that sends probes to b, 20 ms apart; `links`: instead of the link."""
    links = links or f"  - {{between: [a, b], latency: {LATENCY_MS}ms}}\n"
    return f"""
ipv6: false
allow-unreachable: true
nodes:
  a:
    after: [b]
    run: [{sys.executable}, {PROBE}, send, b, "9", "{count}", "{spacing_ns}", "{size}", FOLDER/sent]
  b:
    ready: log:ready
    run: [{sys.executable}, {PROBE}, receive, "9", FOLDER/came]
{nodes}links:
{links}"""


def truth(trial, latency_ms=LATENCY_MS, bound_ms=1.0, count=None, early_ms=0.02):
    """Compares each probe's delay with what is asked.

    More than 1 % later than the bound, or one more than 25 times as late, is broken whatever a rule of 0.1 % or of 20
    times says; none late is right; between the two a verdict may go either way.
    `count`: how many probes the program gave to its kernel, where some may never have left it. `early_ms`: how much
    less than asked is within the bound.
    """
    try:
        sent, came = dict(read(trial.folder / "sent")), dict(read(trial.folder / "came"))
    except OSError:
        return Truth(True, "the probes did not finish")
    if not sent:
        return Truth(None, "no probe has a stamp")
    asked, bound = latency_ms * 1e6, bound_ms * 1e6
    late = [came[number] - at - asked for number, at in sent.items() if number in came]
    lost = (count or len(sent)) - len(late)
    worst, least = max(late, default=0), min(late, default=0)
    many = sum(1 for one in late if one > bound + PATH_NS)
    seen = f"{many} of {len(late)} late, at the worst {worst / 1e6:.2f} ms, least {least / 1e6:.3f} ms, {lost} lost"
    if lost:
        return Truth(True, seen)
    if many > 0.01 * len(late) and many > 5 or worst > 25 * bound + PATH_NS:
        return Truth(True, seen)
    # Nor may one come before its time: the stamps of both ends are of one clock.
    if least < -early_ms * 1e6:
        return Truth(True, seen)
    return Truth(False if worst <= bound else None, seen)
