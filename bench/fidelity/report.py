#!/usr/bin/env python3
"""Tables and charts of results: report.py DIR [--docs]

DIR holds host/ and guest/ with the files of measure.py and aqm.py, and rows.tsv. Tables go to
standard output and DIR/report.md, charts to DIR; with --docs also into docs/fidelity.md and
docs/figures.
"""

import json
import statistics
import sys
from pathlib import Path

import cases
import compare

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from plot import MODEL, Chart  # noqa: E402
from splice import splice  # noqa: E402

ORDER = [
    "windtunnel",
    "netem",
    "htb",
    "tbf",
    "netem-trains",
    "htb-trains",
    "tbf-trains",
    "rattan",
    "tc",
]
NAMES = {
    "serial line": "ideal serial line (simulated)",
    "windtunnel": "Windtunnel",
    "netem": "netem",
    "htb": "HTB",
    "tbf": "TBF",
    "rattan": "rattan 0.1.1",
    "tc": "plain veth",
    "line": "kernel, serial device",
    "netem-trains": "netem, super-packets",
    "htb-trains": "HTB, super-packets",
    "tbf-trains": "TBF, super-packets",
}
PLACES = {
    "host": "On the machine's own kernel",
    "guest": "In the guest kernel (user-mode Linux): Windtunnel and netem side by side",
}
COLUMNS = {
    "delay": [
        ("mean_error_ms", "error of the mean, ms", 3),
        ("p50_error_ms", "of p50, ms", 3),
        ("p99_error_ms", "of p99, ms", 3),
        ("early", "earlier than asked", 0),
        ("ks", "KS distance", 4),
        ("ks_form", "KS of the form", 4),
    ],
    "loss": [
        ("loss_percent", "lost, %", 3),
        ("loss_sigmas", "off by, σ", 2),
        ("burst_error", "error of the mean burst", 3),
        ("ks", "KS distance", 4),
    ],
    "spacing": [
        ("rate_error_percent", "error of the rate, %", 4),
        ("gap_p50_error_us", "error of the median gap, µs", 2),
        ("gap_off_p50_us", "gaps off by, p50, µs", 2),
        ("gap_off_p99_us", "p99, µs", 1),
    ],
    "goodput": [
        ("goodput_mbit", "goodput, Mbit/s", 3),
        ("goodput_error_percent", "error, %", 3),
        ("sigma_percent", "σ of seconds, %", 2),
    ],
}
TITLES = {
    "delay": "Delay and jitter",
    "loss": "Loss",
    "spacing": "Rate: spacing of packets",
    "goodput": "Rate: one TCP stream",
}


def main(words):
    if not words or "--help" in words:
        sys.exit(__doc__)
    folder, docs = Path(words[0]), Path(__file__).resolve().parents[2] / "docs"
    figures = docs / "figures" if "--docs" in words else folder
    figures.mkdir(parents=True, exist_ok=True)
    lines = rows(folder / "rows.tsv")
    for place, title in PLACES.items():
        found = compare.read(folder / place)
        if found:
            lines += [f"### {title}", "", machine(folder / place), ""]
            lines += tables(found)
            charts(place, found, figures)
        lines += aqm(folder / place) + red(folder / place)
    text = "\n".join(lines)
    (folder / "report.md").write_text(text)
    if "--docs" in words:
        splice(docs / "fidelity.md", "references", text)
    print(text)


def machine(folder):
    file = folder / "machine.txt"
    return file.read_text().strip() + "." if file.exists() else ""


def rows(file):
    """The rows of bench/rtt-error and bench/goodput."""
    if not file.exists():
        return []
    rows = [line.split("\t") for line in file.read_text().splitlines() if line.count("\t") == 3]
    return [
        "### Round trips and goodput against the model",
        "",
        "| what | asked | ours | ours / asked |",
        "| --- | --- | --- | --- |",
        *("| " + " | ".join(fields) + " |" for fields in rows),
        "",
    ]


def tables(found):
    lines = []
    for kind, columns in COLUMNS.items():
        asked = [
            (case, tool, figures)
            for (_, tool), (case, _, figures) in found.items()
            if case.kind == kind
        ]
        if not asked:
            continue
        columns = [
            column for column in columns if any(column[0] in figures for *_, figures in asked)
        ]
        lines += [
            f"#### {TITLES[kind]}",
            "",
            "| asked | tool | " + " | ".join(label for _, label, _ in columns) + " |",
            "| --- | --- |" + " ---: |" * len(columns),
        ]
        asked.sort(key=lambda row: (order(row[0].name), ORDER.index(row[1])))
        for case, tool, figures in asked:
            if "refused" in figures:
                lines.append(
                    f"| {case.asked} | {NAMES[tool]} | no: {figures['refused'][:60]} |"
                    + " |" * (len(columns) - 1)
                )
                continue
            cells = [
                f"{figures[key]:.{digits}f}" if key in figures else "" for key, _, digits in columns
            ]
            lines.append(f"| {case.asked} | {NAMES[tool]} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def order(name):
    known = [case.name for case in [cases.FLOOR, *cases.CASES]]
    return known.index(name)


def charts(place, found, figures):
    where = "" if place == "host" else ", guest kernel"
    for (name, _), (case, *_rest) in found.items():
        seen = {
            tool: samples
            for (other, tool), (_, samples, _) in found.items()
            if other == name and "refused" not in samples
        }
        tools = sorted(seen, key=ORDER.index)
        if case.kind == "delay":
            asked = case.figures["p50"]
            fixed = not name.startswith("jitter")
            chart = Chart(
                f"{case.asked.capitalize()}{where}",
                "delay beyond the asked one, ms" if fixed else "one-way delay, ms",
                "share of packets",
                y=(0, 1),
                x=(-0.1, 1) if fixed else (asked - 30, asked + 40),
            )
            for tool in tools:
                values = compare.delays(seen[tool])
                chart.cdf(NAMES[tool], [value - asked for value in values] if fixed else values)
            if fixed:
                chart.line("asked", [(0, 0), (0, 1)], MODEL, "6 4")
            else:
                chart.line(
                    "asked",
                    [
                        (asked - 30 + step / 2, case.cdf(asked - 30 + step / 2))
                        for step in range(140)
                    ],
                    MODEL,
                    "6 4",
                )
        elif case.kind == "spacing":
            gap = case.figures["gap"]
            chart = Chart(
                f"Packets behind {case.name.split('-')[1]} Mbit/s{where}",
                "time between two packets, µs",
                "share",
                y=(0, 1),
                x=(gap * 0.6, gap * 1.4),
            )
            for tool in tools:
                if "refused" in found[name, tool][2]:
                    continue
                chart.cdf(NAMES[tool], compare.gaps_us(case, seen[tool]))
            chart.line("asked", [(gap, 0), (gap, 1)], MODEL, "6 4")
        else:
            continue
        chart.write(figures / f"fidelity-{place}-{name}.svg")


def median(rows, keys):
    """Of the rounds with the same keys: the median of each figure, or the refusal."""
    rounds = {}
    for row in rows:
        rounds.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    for key, same in rounds.items():
        fine = [row for row in same if "refused" not in row]
        if not fine:
            yield same[0]
            continue
        figures = {
            name: statistics.median(row[name] for row in fine)
            for name in fine[0]
            if name not in (*keys, "round")
        }
        yield dict(zip(keys, key)) | figures


def aqm(folder):
    """The comparison of disciplines, if aqm.py has run."""
    file = folder / "aqm.json"
    if not file.exists():
        return []
    lines = [
        "#### Disciplines: 10 Mbit/s, 20 ms round trip",
        "",
        "UDP at 1.2 times the rate must lose 16.67 % once the queue is steady; that of CoDel "
        "still shrinks after 12 s. Medians of the rounds.",
        "",
        "| discipline | load | tool | goodput, Mbit/s | dropped, % | delay p50, ms | p95, ms |",
        "| --- | --- | --- |" + " ---: |" * 4,
    ]
    for row in median(json.loads(file.read_text()), ("discipline", "load", "tool")):
        tool = "kernel, HTB" if row["tool"] == "tc" else NAMES[row["tool"]]
        cells = (
            f"refused: {row['refused'][:80]} | | |"
            if "refused" in row
            else f"{row['goodput']:.3f} | {row['dropped']:.2f} | {row['p50']:.2f} "
            f"| {row['p95']:.2f}"
        )
        lines.append(f"| {row['discipline']} | {row['load']} | {tool} | {cells} |")
    return lines + [""]


def red(folder):
    """RED with the kernel's as a root, if red.py has run."""
    file = folder / "red.json"
    if not file.exists():
        return []
    rows = list(median(json.loads(file.read_text()), ("case", "ecn", "tool")))
    lines = [
        "#### RED by its defaults: 10 Mbit/s, the kernel's as root of a serial device",
        "",
        "| load | ECN | tool | goodput, Mbit/s | dropped | marked | delay p50, ms | p95, ms "
        "| pings that came back |",
        "| --- | --- | --- |" + " ---: |" * 6,
    ]
    cases = list(dict.fromkeys((row["case"], row["ecn"]) for row in rows))
    for row in sorted(rows, key=lambda row: cases.index((row["case"], row["ecn"]))):
        lines.append(
            "| "
            + " | ".join(
                [row["case"], "on" if row["ecn"] else "off", NAMES[row["tool"]], *red_cells(row)]
            )
            + " |"
        )
    return lines + [""]


def red_cells(row):
    if "pings" in row:
        return [
            "",
            "",
            f"{row['marked']:.0f} of {row['received']:.0f}",
            "",
            "",
            f"{row['pings']:.0f} of 100",
        ]
    if "p50" in row:
        return [
            f"{row['goodput']:.3f}",
            f"{row['dropped']:.2f} %",
            f"{row['marked']:.2f} %",
            f"{row['p50']:.2f}",
            f"{row['p95']:.2f}",
            "",
        ]
    return [
        f"{row['goodput']:.3f}",
        f"{row['dropped_packets']:.0f}",
        f"{row['marked_packets']:.0f}",
        "",
        "",
        "",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
