"""Samples against the asked values: a few figures for each case and tool."""

import json
import math
import statistics
from pathlib import Path

import cases


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def distance(values, cdf):
    """Kolmogorov–Smirnov: the largest difference of the values to the asked distribution."""
    ordered, count = sorted(values), len(values)
    return max(
        max((index + 1) / count - cdf(value), cdf(value) - index / count)
        for index, value in enumerate(ordered)
    )


def discrete(values, cdf):
    """The same for whole numbers, where only the steps count."""
    ordered, count, seen, worst = sorted(values), len(values), 0, 0.0
    for value in range(ordered[0], ordered[-1] + 1):
        while seen < count and ordered[seen] <= value:
            seen += 1
        worst = max(worst, abs(seen / count - cdf(value)))
    return worst


def geometric(chance):
    return lambda length: 1 - (1 - chance) ** length


def delays(seen):
    return [(at - sent) / 1e6 for _, sent, at in seen["received"]]


def of_delay(case, seen):
    values = delays(seen)
    asked = case.figures
    out = {
        "packets": len(values),
        "mean_error_ms": statistics.mean(values) - asked["mean"],
        "p50_error_ms": percentile(values, 0.5) - asked["p50"],
        "p99_error_ms": percentile(values, 0.99) - asked["p99"],
        "early": sum(value < case_least(case) for value in values),
    }
    if case.name.startswith("jitter"):
        out["ks"] = distance(values, case.cdf)
        # What every path adds, programs and veths, is not an error of the distribution's form.
        shift = min(
            (
                (distance([value - step / 100 for value in values], case.cdf))
                for step in range(0, 100, 2)
            )
        )
        out["ks_form"] = shift
    return out


def case_least(case):
    """The least delay that was asked for."""
    low, high = -1.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if case.cdf(middle) > 0 else (middle, high)
    return low


def bursts(count, received):
    """Lengths of the runs of lost numbers, and of the runs between them."""
    got = {number for number, *_ in received}
    lengths, gaps, run, since = [], [], 0, 0
    for number in range(count):
        if number in got:
            since += 1
            if run:
                lengths.append(run)
            run = 0
        else:
            run += 1
            if since or run > 1:
                gaps.append(since + 1 if run == 1 else 1)
            since = 0
    return lengths, gaps


def of_loss(case, seen):
    count, received = seen["count"], seen["received"]
    lengths, gaps = bursts(count, received)
    share = (count - len(received)) / count
    asked = case.figures["loss"]
    # The deviation of a share of independent losses; of bursts it is wider by what one burst's end
    # decides.
    wide = 1 if case.name != "loss-bursts" else math.sqrt((1 + (1 - 0.21)) / (1 - (1 - 0.21)))
    sigma = wide * math.sqrt(asked * (1 - asked) / count)
    burst = 1 - 1 / case.figures["burst"]
    form = (
        discrete(lengths, geometric(1 - burst))
        if case.name == "loss-bursts"
        else discrete(gaps, geometric(asked))
    )
    return {
        "packets": count,
        "loss_percent": 100 * share,
        "loss_sigmas": (share - asked) / sigma,
        "burst_error": statistics.mean(lengths) - case.figures["burst"],
        "ks": form,
    }


def gaps_us(case, seen):
    """Times between arrivals of packets that had waited, the later of two for three gaps at the
    least: a sender that paused left no queue to
    be measured."""
    received = sorted((at, at - sent) for _, sent, at in seen["received"])
    waited = case.figures["gap"] * 3000
    return [
        (at - before) / 1e3
        for (before, _), (at, late) in zip(received, received[1:])
        if late > waited
    ]


def of_spacing(case, seen):
    gaps = gaps_us(case, seen)
    if len(gaps) < 200:
        return {"refused": "the sender could not fill the queue"}
    asked = case.figures["gap"]
    off = [abs(gap - asked) for gap in gaps]
    return {
        "packets": len(gaps) + 1,
        "rate_error_percent": 100 * (asked / statistics.mean(gaps) - 1),
        "gap_p50_error_us": percentile(gaps, 0.5) - asked,
        "gap_off_p50_us": percentile(off, 0.5),
        "gap_off_p99_us": percentile(off, 0.99),
    }


def of_goodput(case, seen):
    start, size, sums = seen["first_ns"] // seen["bin_ns"] + 10, seen["bin_ns"], []
    per = 1_000_000_000 // size
    bins = dict(map(tuple, seen["bins"]))
    for second in range(case.count - 2):
        first = start + second * per
        sums.append(sum(bins.get(index, 0) for index in range(first, first + per)) * 8 / 1e6)
    asked = case.figures["goodput"]
    return {
        "goodput_mbit": statistics.mean(sums),
        "goodput_error_percent": 100 * (statistics.mean(sums) / asked - 1),
        "sigma_percent": 100 * statistics.pstdev(sums) / asked,
    }


FIGURES = {"delay": of_delay, "loss": of_loss, "spacing": of_spacing, "goodput": of_goodput}


def read(folder):
    """(case, tool) to (case, samples, figures) of a folder's results; refusals have no figures."""
    out = {}
    every = {case.name: case for case in [cases.FLOOR, *cases.CASES]}
    for file in sorted(Path(folder).glob("*.*.json")):
        tool, name = file.name.removesuffix(".json").split(".", 1)
        if name not in every:
            continue
        seen = json.loads(file.read_text())
        figures = seen if "refused" in seen else FIGURES[every[name].kind](every[name], seen)
        out[name, tool] = (every[name], seen, figures)
    return out
