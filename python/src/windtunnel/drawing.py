"""A map of a network as SVG: the same for the same network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

WIDTH, HEIGHT, MARGIN = 720, 420, 48
STEPS = 200
LAID_OUT_MAX = 150
"""With more vertices, they stay on their circle."""


class Edge(NamedTuple):
    """A link between two vertices, by their positions."""

    a: int
    b: int
    text: str


class Vertex(NamedTuple):
    """A node, router or LAN."""

    name: str
    kind: str


def of_plan(plan: Mapping[str, Any]) -> str:
    """The map of a resolved scenario."""
    kinds = {kind: plan.get(f"{kind}s", []) for kind in ("node", "router", "lan")}
    vertices = [Vertex(it["name"], kind) for kind, named in kinds.items() for it in named]
    first, start = {}, 0
    for kind, named in kinds.items():
        first[kind] = start
        start += len(named)
    edges = []
    for link in plan["links"]:
        ends = [next(iter(end["vertex"].items())) for end in link["ends"]]
        a, b = (first[kind] + number for kind, number in ends)
        profile = link["profiles"][0]
        edges.append(Edge(a, b, _label(link["name"], profile)))
    return svg(vertices, edges)


def of_document(document: Mapping[str, Any]) -> str:
    """The map of a scenario as it is written; a group is one vertex."""
    kinds = {kind: document.get(f"{kind}s") or [] for kind in ("node", "router", "lan")}
    named = [(kind, str(name), names) for kind, names in kinds.items() for name in names]
    vertices = [Vertex(_many(name, names), kind) for kind, name, names in named]
    places = {name: place for place, (_, name, _) in enumerate(named)}
    edges = []
    for link in document.get("links") or []:
        ends = [places.get(str(end)) for end in link.get("between", [])]
        if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
            edges.append(Edge(ends[0], ends[1], _label(link.get("name", ""), link)))
    return svg(vertices, edges)


def _many(name: str, entries: Any) -> str:
    """The name of a vertex, with the number of its members."""
    entry = entries[name] if isinstance(entries, Mapping) else None
    count = (entry or {}).get("count")
    return f"{name} ×{count}" if count else name


def svg(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """The drawing. It follows the colours of the page that it is in."""
    places = _fit(_layout(len(vertices), edges))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'style="max-width:{WIDTH}px" font-family="sans-serif" font-size="11" '
        'fill="currentColor">'
    ]
    for edge in edges:
        (x1, y1), (x2, y2) = places[edge.a], places[edge.b]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="currentColor" stroke-opacity=".45"><title>{escaped(edge.text)}'
            "</title></line>"
        )
        if len(edges) <= 12:
            parts.append(_text((x1 + x2) / 2, (y1 + y2) / 2 - 4, edge.text, 0.7))
    for vertex, (x, y) in zip(vertices, places):
        parts.append(_mark(vertex.kind, x, y))
        parts.append(_text(x, y + 20, vertex.name, 1))
    return "".join([*parts, "</svg>"])


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "router":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#8250df"/>'
    if kind == "lan":
        return f'<rect x="{x - 12:.1f}" y="{y - 3:.1f}" width="24" height="6" fill="#bf8700"/>'
    return f'<rect x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12" rx="2" fill="#0969da"/>'


def _text(x: float, y: float, text: str, opacity: float) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" opacity="{opacity}">'
        f"{escaped(text)}</text>"
    )


def _label(name: str, properties: Mapping[str, Any]) -> str:
    said = [properties.get("latency"), properties.get("rate"), properties.get("preset")]
    words = [str(it) for it in said if isinstance(it, str) and it not in ("0ns", "none")]
    return " ".join([name, *words]).strip()


def _layout(count: int, edges: Sequence[Edge]) -> list[tuple[float, float]]:
    """Fruchterman and Reingold's forces, from a circle: no randomness, so the same each time."""
    angle = 2 * math.pi / max(count, 1)
    x = [math.cos(angle * at) for at in range(count)]
    y = [math.sin(angle * at) for at in range(count)]
    if not 2 < count <= LAID_OUT_MAX:
        return list(zip(x, y))
    ideal = 1.6 / math.sqrt(count)
    for step in range(STEPS):
        dx, dy = [0.0] * count, [0.0] * count
        for a in range(count):
            for b in range(a):
                _push(a, b, x, y, dx, dy, lambda length: ideal * ideal / length)
        for edge in edges:
            _push(edge.a, edge.b, x, y, dx, dy, lambda length: -length * length / ideal)
        heat = 0.2 * (1 - step / STEPS)
        for at in range(count):
            length = math.hypot(dx[at], dy[at]) or 1.0
            x[at] += dx[at] / length * min(length, heat)
            y[at] += dy[at] / length * min(length, heat)
    return list(zip(x, y))


def _push(
    a: int, b: int, x: list[float], y: list[float], dx: list[float], dy: list[float], force: Any
) -> None:
    apart_x, apart_y = x[a] - x[b], y[a] - y[b]
    length = math.hypot(apart_x, apart_y) or 1e-6
    strength = force(length) / length
    dx[a] += apart_x * strength
    dy[a] += apart_y * strength
    dx[b] -= apart_x * strength
    dy[b] -= apart_y * strength


def _fit(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if not places:
        return []
    lows = [min(it[axis] for it in places) for axis in (0, 1)]
    spans = [(max(it[axis] for it in places) - lows[axis]) or 1.0 for axis in (0, 1)]
    sizes = (WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)
    return [
        (
            MARGIN + (x - lows[0]) / spans[0] * sizes[0],
            MARGIN + (y - lows[1]) / spans[1] * sizes[1],
        )
        for x, y in places
    ]


def escaped(text: str) -> str:
    """A text for HTML, also in an attribute."""
    for letter, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#39")):
        text = text.replace(letter, f"&{name};")
    return text
