"""Draws each experiment as SplayNet's paper does, ours beside the paper's numbers and the model."""
import model
from plot import MODEL, Chart

# SplayNet's paper, Figure 3.6 b: how far its CDFs were from the asked round trip, at the most.
PAPER_RTT = {40: 0.10, 100: 0.05, 200: 0.02, 300: 0.02, 400: 0.01}


def draw(name, series, folder):
    drawer = sharing if name.startswith("sharing") else DRAWERS.get(name)
    if drawer and series:
        drawer(name, series, folder)


def latency(_, series, folder):
    chart = Chart("Round trips against asked (SplayNet 3.6 b)", "deviation from the asked round trip, %", "share of requests",
                  x=(-3, 11), y=(0, 1))
    for asked, times in series.items():
        chart.cdf(f"ours, {asked} ms", [100 * (time - asked) / asked for time in times])
    for index, (asked, worst) in enumerate(PAPER_RTT.items()):
        chart.line("paper: up to" if not index else "", [(100 * worst, 0.08 * index), (100 * worst, 0.08 * index + 0.06)], MODEL)
    chart.write(folder / "splaynet-3.6b.svg")
    chart = Chart("Round trips: error against asked", "time beyond the asked round trip, ms", "share of requests", x=(0, 1), y=(0, 1))
    for asked, times in series.items():
        chart.cdf(f"{asked} ms", [time - asked for time in times])
    chart.write(folder / "splaynet-rtt-error.svg")


def bandwidth(_, series, folder):
    chart = Chart("One TCP stream on 10 Mbit/s (SplayNet 3.6 c)", "time, s", "goodput, Mbit/s, 1 s bins", y=(8, 10.5))
    chart.line("ours", series["goodput"])
    end = series["goodput"][-1][0]
    chart.line("model, with TCP timestamps", [(0, model.tcp_goodput(10))] + [(end, model.tcp_goodput(10))], MODEL, "6 4")
    chart.line("paper: Emulab, ModelNet within", [(0, 9), (end, 9)], "#cccccc", "2 3")
    chart.line("", [(0, 10), (end, 10)], "#cccccc", "2 3")
    chart.write(folder / "splaynet-3.6c.svg")


def sharing(name, series, folder):
    chart = Chart(f"Three streams of 50 MB, {name.removeprefix('sharing-')} (SplayNet 3.7)", "time, s", "goodput, Mbit/s, 1 s bins", y=(0, 11))
    for label, points in series["lines"].items():
        chart.line(label, points)
    for index in range(3):
        points = [(at, shares[index]) for low, high, shares in series["phases"] if index in shares for at in (low, high)]
        chart.line("model" if not index else "", points, MODEL, "6 4")
    chart.write(folder / f"splaynet-3.7-{name.removeprefix('sharing-')}.svg")


def overhead(_, series, folder):
    chart = Chart("Small messages with TCP_NODELAY (SplayNet 3.8)", "bytes a message", "goodput, Mbit/s", x=(0, 33), y=(0, 3.2))
    chart.points("ours", series["goodput"])
    sizes = [size / 2 for size in range(2, 65)]
    chart.line("model with TCP timestamps, 10·m/(m+90)", [(m, model.message_goodput(10, m)) for m in sizes], MODEL, "6 4")
    chart.line("paper's model, 10·m/(m+78)", [(m, model.message_goodput(10, m, False)) for m in sizes], "#c9a227", "2 3")
    chart.write(folder / "splaynet-3.8.svg")


def faults(_, series, folder):
    chart = Chart("Changes as 10 000 datagrams see them", "time, s", "one-way delay, ms")
    chart.line("delay of each", series["delay"][::4])
    chart.write(folder / "splaynet-changes.svg")


def loss_jitter(_, series, folder):
    chart = Chart("Jitter of 20 ms over 10 ms", "one-way delay, ms", "share of datagrams", y=(0, 1))
    chart.cdf("ours", series["jitter"])
    chart.line("asked", [(10, 0), (30, 1)], MODEL, "6 4")
    chart.write(folder / "splaynet-jitter.svg")


def rtt_share(_, series, folder):
    chart = Chart("SplayNet's RTT-aware share, at the level of packets", "time, s", "goodput, Mbit/s, 1 s bins", y=(0, 2.2))
    for label, points in series["lines"].items():
        chart.line(label, points)
    for index, (value, low, high) in enumerate(((1.5, 20, 180), (0.5, 20, 180))):
        chart.line("SplayNet's model" if not index else "", [(low, value * 0.9415), (high, value * 0.9415)], MODEL, "6 4")
    chart.write(folder / "splaynet-rtt-share.svg")


DRAWERS = {"latency": latency, "bandwidth": bandwidth, "overhead": overhead, "faults": faults, "loss-jitter": loss_jitter, "rtt-share": rtt_share}
