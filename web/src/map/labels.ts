/** Labels beside their vertices; of those that would lie over one another, the more important stays. */
import type { Vertex } from '../document/types';
import type { VertexShape } from './draw';
import type { Point } from './layout';

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const longest = 22;

export function placeLabels(
  parts: VertexShape[],
  on: Point[],
  neighbours: number[][],
  vertices: Vertex[],
  order: { index: number; weight: number }[],
  em: number,
  size: { width: number; height: number },
): void {
  const font = em * 0.82;
  const taken: Box[] = on.map(({ x, y }) => ({
    left: x - 7,
    right: x + 7,
    top: y - 7,
    bottom: y + 7,
  }));
  for (const { index } of order.sort((a, b) => b.weight - a.weight || a.index - b.index)) {
    const { label } = parts[index];
    const name = vertices[index].name;
    const shown = name.length > longest ? `${name.slice(0, longest - 1)}…` : name;
    if (label.textContent !== shown) label.textContent = shown;
    const width = shown.length * font * 0.58;
    const free = sides(on[index], ways(on, index, neighbours[index]), width, font).find(
      ({ box }) =>
        inside(box, size) && taken.every((other, k) => k === index || !overlaps(box, other)),
    );
    label.setAttribute('visibility', free ? 'visible' : 'hidden');
    if (!free) continue;
    label.setAttribute('x', free.x.toFixed(1));
    label.setAttribute('y', free.y.toFixed(1));
    label.setAttribute('text-anchor', free.anchor);
    taken.push(free.box);
  }
}

/** The directions of a vertex's links. */
function ways(on: Point[], index: number, neighbours: number[]): Point[] {
  return neighbours.map((other) => {
    const [dx, dy] = [on[other].x - on[index].x, on[other].y - on[index].y];
    const length = Math.hypot(dx, dy) || 1;
    return { x: dx / length, y: dy / length };
  });
}

/** Places around a vertex, those farthest from its links first. */
function sides({ x, y }: Point, links: Point[], width: number, font: number) {
  const near = (dx: number, dy: number) =>
    Math.max(-1, ...links.map((way) => way.x * dx + way.y * dy));
  const box = (left: number, top: number): Box => ({
    left: x + left,
    right: x + left + width,
    top: y + top,
    bottom: y + top + font,
  });
  return [
    {
      x: 0,
      y: 11 + font * 0.8,
      anchor: 'middle',
      box: box(-width / 2, 11),
      rank: near(0, 1) - 0.1,
    },
    { x: 13, y: font * 0.35, anchor: 'start', box: box(13, -font / 2), rank: near(1, 0) },
    { x: -13, y: font * 0.35, anchor: 'end', box: box(-13 - width, -font / 2), rank: near(-1, 0) },
    { x: 0, y: -12, anchor: 'middle', box: box(-width / 2, -11 - font), rank: near(0, -1) },
  ].sort((a, b) => a.rank - b.rank);
}

function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function inside(box: Box, { width, height }: { width: number; height: number }): boolean {
  return box.left > 0 && box.top > 0 && box.right < width && box.bottom < height;
}
