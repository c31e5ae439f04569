"""Charts as SVG from nothing but the standard library: axes, lines, points, a legend.

    chart = Chart("RTT", "time, s", "ms")
    chart.line("ours", [(0, 1), (1, 2)])
    chart.write("rtt.svg")
"""
import math
from xml.sax.saxutils import escape

COLOURS = ["#0b62a4", "#d1531b", "#2b8a3e", "#8e44ad", "#8d6e00", "#c2185b", "#00838f", "#555555"]
MODEL = "#999999"


class Chart:
    """One chart. Ranges are those of the data unless given as (low, high)."""

    def __init__(self, title, x_label, y_label, x=None, y=None, log_x=False, log_y=False, size=(760, 380)):
        self.title, self.labels = title, (x_label, y_label)
        self.range, self.log, self.size = [x, y], (log_x, log_y), size
        self.series = []

    def line(self, label, points, colour=None, dash=None):
        self._add("line", label, points, colour, dash)

    def points(self, label, points, colour=None):
        self._add("points", label, points, colour, None)

    def cdf(self, label, values, colour=None, dash=None):
        """The empirical distribution function, thinned to 400 steps."""
        ordered = sorted(values)
        count = len(ordered)
        steps = [(index + 1) / count for index in range(0, count, max(1, count // 400))]
        self.line(label, [(ordered[min(count - 1, round(p * count) - 1)], p) for p in steps], colour, dash)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())

    def svg(self):
        width, height = self.size
        left, right, top, bottom = 64, width - 16, 34, height - 46
        x_low, x_high = self._limits(0)
        y_low, y_high = self._limits(1)

        def across(value):
            return left + self._share(0, value, x_low, x_high) * (right - left)

        def up(value):
            return bottom - self._share(1, value, y_low, y_high) * (bottom - top)

        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
               f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
               f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
               f'<text x="{width / 2:.0f}" y="18" text-anchor="middle" font-size="14">{escape(self.title)}</text>']
        for tick in ticks(x_low, x_high, self.log[0]):
            out.append(f'<path d="M{across(tick):.1f} {top}V{bottom}" stroke="#e6e6e6"/>'
                       f'<text x="{across(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
        for tick in ticks(y_low, y_high, self.log[1]):
            out.append(f'<path d="M{left} {up(tick):.1f}H{right}" stroke="#e6e6e6"/>'
                       f'<text x="{left - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        out.append(f'<path d="M{left} {top}V{bottom}H{right}" stroke="#333333" fill="none"/>')
        out.append(f'<text x="{(left + right) / 2:.0f}" y="{height - 8}" text-anchor="middle">{escape(self.labels[0])}</text>')
        out.append(f'<text x="16" y="{(top + bottom) / 2:.0f}" text-anchor="middle" '
                   f'transform="rotate(-90 16 {(top + bottom) / 2:.0f})">{escape(self.labels[1])}</text>')
        out.append(f'<clipPath id="area"><rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>')
        for kind, _, points, colour, dash in self.series:
            if kind == "line" and points:
                path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points)
                pattern = f' stroke-dasharray="{dash}"' if dash else ""
                out.append(f'<path d="M{path}" stroke="{colour}" stroke-width="1.6" fill="none" clip-path="url(#area)"{pattern}/>')
            else:
                out.extend(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.4" fill="{colour}"/>' for x, y in points)
        out.extend(self._legend(right, top))
        return "\n".join(out + ["</svg>", ""])

    def _add(self, kind, label, points, colour, dash):
        colour = colour or COLOURS[len([s for s in self.series if s[3] in COLOURS]) % len(COLOURS)]
        self.series.append((kind, label, list(points), colour, dash))

    def _limits(self, axis):
        if self.range[axis]:
            return self.range[axis]
        values = [point[axis] for series in self.series for point in series[2]]
        if self.log[axis]:
            values = [value for value in values if value > 0]
        low, high = min(values, default=0), max(values, default=1)
        if low == high:
            high = low + (abs(low) or 1)
        if self.log[axis]:
            return low, high
        margin = (high - low) * 0.05
        return (0 if 0 <= low < margin * 8 else low - margin), high + margin

    def _share(self, axis, value, low, high):
        if self.log[axis]:
            value, low, high = (math.log10(max(v, 1e-12)) for v in (value, low, high))
        return (value - low) / (high - low)

    def _legend(self, right, top):
        labels = [(label, colour, kind, dash) for kind, label, _, colour, dash in self.series if label]
        width = 34 + max((len(label) for label, *_ in labels), default=0) * 6.7
        out = [f'<rect x="{right - width:.0f}" y="{top + 4}" width="{width:.0f}" height="{len(labels) * 17 + 6}" '
               'fill="#ffffff" fill-opacity="0.85"/>']
        for row, (label, colour, kind, dash) in enumerate(labels):
            y = top + 18 + row * 17
            pattern = f' stroke-dasharray="{dash}"' if dash else ""
            mark = (f'<circle cx="{right - width + 15:.0f}" cy="{y - 4}" r="3.4" fill="{colour}"/>' if kind == "points" else
                    f'<path d="M{right - width + 4:.0f} {y - 4}h22" stroke="{colour}" stroke-width="2"{pattern}/>')
            out.append(f'{mark}<text x="{right - width + 30:.0f}" y="{y}">{escape(label)}</text>')
        return out


def ticks(low, high, log=False):
    """Round numbers between two values, about six of them."""
    if log:
        return [10.0**power for power in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]
    step = 10 ** math.floor(math.log10((high - low) / 5))
    step *= next((factor for factor in (1, 2, 5) if (high - low) / (step * factor) <= 7), 10)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]
