"""The cases, and the settings of each tool for them. Times are in milliseconds.

Every case is asked of one direction, from the sender to the receiver; the other is empty.
"""

import math
import statistics
from dataclasses import dataclass, field

ETHERNET = 38  # bytes that a packet costs on the line beside its IP bytes


@dataclass
class Case:
    """One case. A tool without an entry in `settings` cannot do it."""

    name: str
    kind: str  # delay, loss, spacing or goodput
    asked: str
    settings: dict
    count: int = 4000
    step_ns: int = 2_000_000
    size: int = 100
    cdf: object = None
    figures: dict = field(default_factory=dict)


def fixed(ms):
    return lambda x: 1.0 if x >= ms else 0.0


def uniform(low, high):
    return lambda x: min(1.0, max(0.0, (x - low) / (high - low)))


NORMAL = statistics.NormalDist()


def normal(mean, deviation, cut=4):
    """Cut at `cut` deviations."""
    low, high = NORMAL.cdf(-cut), NORMAL.cdf(cut)
    return lambda x: min(1.0, max(0.0, (NORMAL.cdf((x - mean) / deviation) - low) / (high - low)))


def lomax(start, mean, shape=3):
    scale = mean * (shape - 1)
    return lambda x: 0.0 if x <= start else 1 - (1 + (x - start) / scale) ** -shape


def normal_table(deviation_us, cut=4, steps=400):
    """Quantiles of the cut normal above its least value, in microseconds."""
    low, high = NORMAL.cdf(-cut), NORMAL.cdf(cut)
    points = [NORMAL.inv_cdf(low + (high - low) * index / steps) for index in range(steps + 1)]
    return ", ".join(f"{round((point + cut) * deviation_us)}us" for point in points)


def delay(ms):
    return Case(
        f"delay-{ms}",
        "delay",
        f"delay {ms} ms",
        {
            "netem": f"netem limit 100000 delay {ms}ms",
            "windtunnel": f"latency: {ms}ms",
            "rattan": {"Delay": {"delay": f"{ms}ms"}},
        },
        count=2000,
        cdf=fixed(ms),
        figures={"mean": ms, "p50": ms, "p99": ms},
    )


def jitter():
    pareto_start, pareto_mean = 50 - 10 * math.sqrt(1 / 3), 10 * math.sqrt(1 / 3)
    yield Case(
        "jitter-uniform",
        "delay",
        "uniform 30 to 70 ms",
        {
            "netem": "netem limit 100000 delay 50ms 20ms",
            "windtunnel": "latency: 30ms, jitter: 40ms, reorder: jitter",
        },
        cdf=uniform(30, 70),
        figures={"mean": 50, "p50": 50, "p99": 69.6},
    )
    yield Case(
        "jitter-normal",
        "delay",
        "normal, mean 50 ms, deviation 10 ms",
        {
            "netem": "netem limit 100000 delay 50ms 10ms distribution normal",
            "windtunnel": f"latency: 10ms, jitter: {{table: [{normal_table(10_000)}]}}, "
            "reorder: jitter",
        },
        cdf=normal(50, 10),
        figures={"mean": 50, "p50": 50, "p99": 50 + 10 * NORMAL.inv_cdf(0.99)},
    )
    # netem's `pareto` is a Pareto distribution of shape 3, moved and scaled to this mean and
    # deviation.
    scale = 2 * pareto_mean
    yield Case(
        "jitter-pareto",
        "delay",
        "Pareto of shape 3, mean 50 ms, deviation 10 ms",
        {
            "netem": "netem limit 100000 delay 50ms 10ms distribution pareto",
            "windtunnel": f"latency: {pareto_start * 1000:.0f}us, jitter: {{spread: "
            f"{pareto_mean * 1000:.0f}us, distribution: pareto}}, reorder: jitter",
        },
        cdf=lomax(pareto_start, pareto_mean),
        figures={
            "mean": 50,
            "p50": pareto_start + scale * (2 ** (1 / 3) - 1),
            "p99": pareto_start + scale * (100 ** (1 / 3) - 1),
        },
    )


def loss():
    for percent in (1, 10):
        yield Case(
            f"loss-{percent}",
            "loss",
            f"{percent} % independently",
            {
                "netem": f"netem limit 100000 loss {percent}%",
                "windtunnel": f"loss: {percent}%",
                "rattan": {"Loss": {"pattern": [percent / 100]}},
            },
            count=20_000,
            step_ns=1_000_000,
            figures={"loss": percent / 100, "burst": 1 / (1 - percent / 100)},
        )
    yield Case(
        "loss-bursts",
        "loss",
        "Gilbert: 1 % to bad, 20 % back",
        {
            "netem": "netem limit 100000 loss gemodel 1% 20% 100% 0%",
            "windtunnel": "loss: {good-to-bad: 1%, bad-to-good: 20%}",
        },
        count=20_000,
        step_ns=1_000_000,
        figures={"loss": 0.01 / 0.21, "burst": 5},
    )


def spacing(mbit, count):
    """Full packets at 1.2 times the rate: the times between their arrivals are the rate's."""
    gap = 1538 * 8 / mbit  # microseconds
    return Case(
        f"rate-{mbit}",
        "spacing",
        f"{mbit} Mbit/s: {gap:g} µs between packets of 1500 bytes",
        {
            "netem": f"netem limit 100 rate {mbit}mbit 24",
            # TBF loses what it could not send in time beyond its burst: three packets, or a tick's
            # worth, keep its rate.
            "tbf": f"tbf rate {mbit}mbit burst {max(4614, mbit * 125)} limit 153800 overhead 24",
            "htb": [
                "htb default 1",
                f"class htb rate {mbit}mbit ceil {mbit}mbit burst 1540 cburst 1540 overhead 24",
                "pfifo limit 100",
            ],
            "windtunnel": f"rate: {mbit}mbit, queue: 100p",
            "rattan": {
                "Bw": {
                    "bandwidth": f"{mbit}Mbps",
                    "bw_type": "LinkLayer",
                    "queue": "DropTail",
                    "queue_config": {"packet_limit": 100},
                }
            },
        },
        count=count,
        step_ns=round(gap * 1000 / 1.2),
        size=1500,
        figures={"gap": gap},
    )


def goodput(mbit, seconds=10):
    """One CUBIC stream with timestamps: 1448 of 1538 bytes are payload."""
    settings = spacing(mbit, 0).settings
    settings |= {f"{tool}-trains": settings[tool] for tool in ("netem", "tbf", "htb")}
    return Case(
        f"tcp-{mbit}",
        "goodput",
        f"{mbit * 1448 / 1538:.3f} Mbit/s of payload",
        settings,
        count=seconds,
        figures={"goodput": mbit * 1448 / 1538},
    )


CASES = [
    delay(10),
    delay(20),
    delay(100),
    *jitter(),
    *loss(),
    spacing(10, 4000),
    spacing(100, 12_000),
    goodput(10),
    goodput(100),
]
FLOOR = Case(
    "floor",
    "delay",
    "nothing: the path itself",
    {"tc": "", "windtunnel": "latency: 0ms"},
    count=2000,
    cdf=fixed(0),
    figures={"mean": 0, "p50": 0, "p99": 0},
)


def named(names):
    every = {case.name: case for case in [FLOOR, *CASES]}
    unknown = [name for name in names if name not in every]
    if unknown:
        raise SystemExit(f"no case `{unknown[0]}`\nhint: one of {', '.join(every)}")
    return [every[name] for name in names] if names else list(every.values())
