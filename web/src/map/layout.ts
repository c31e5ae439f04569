/** Where vertices lie: rings around the middle of the network, then forces. The same every time. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force';
import type { MapLink, Vertex } from '../document/types';

export interface Point {
  x: number;
  y: number;
}

/** Places for all vertices, with the widest extent lying level. */
export function layout(vertices: Vertex[], links: MapLink[]): Point[] {
  const neighbours = vertices.map(() => [] as number[]);
  for (const {
    ends: [a, b],
  } of links) {
    neighbours[a].push(b);
    neighbours[b].push(a);
  }
  const points: (SimulationNodeDatum & Point)[] = rings(neighbours);
  const simulation = forceSimulation(points)
    .force(
      'link',
      forceLink(links.map(({ ends: [source, target] }) => ({ source, target })))
        .distance(({ source, target }) =>
          distance(degree(neighbours, source), degree(neighbours, target)),
        )
        .strength(0.7),
    )
    .force('charge', forceManyBody().strength(-420).distanceMax(900))
    .force('collide', forceCollide(26))
    .force('x', forceX(0).strength(0.015))
    .force('y', forceY(0).strength(0.07))
    .stop();
  simulation.tick(vertices.length > 400 ? 120 : 300);
  return level(points.map(({ x, y }) => ({ x, y })));
}

function degree(neighbours: number[][], end: unknown): number {
  return neighbours[(end as { index: number }).index].length;
}

/** Links between hubs are longer, so that what hangs on each has room. */
function distance(a: number, b: number): number {
  return 48 + 9 * Math.sqrt(Math.min(a, b) * 3) + 1.8 * Math.min(40, Math.max(a, b));
}

/** Rings by hops from the middle; each branch has a sector as wide as its number of leaves. */
function rings(neighbours: number[][]): Point[] {
  const points = neighbours.map(() => ({ x: 0, y: 0 }));
  const placed = neighbours.map(() => false);
  let offset = 0;
  for (const root of byDegree(neighbours)) {
    if (placed[root]) continue;
    offset += spread(root, neighbours, points, placed, offset);
  }
  return points;
}

function byDegree(neighbours: number[][]): number[] {
  return neighbours
    .map((_, k) => k)
    .sort((a, b) => neighbours[b].length - neighbours[a].length || a - b);
}

/** Lays out one connected part, and says how wide it is. */
function spread(
  root: number,
  neighbours: number[][],
  points: Point[],
  placed: boolean[],
  offset: number,
): number {
  const tree = breadthFirst(middle(root, neighbours), neighbours);
  const leaves = new Map<number, number>();
  for (const one of [...tree].reverse())
    leaves.set(
      one.vertex,
      Math.max(
        1,
        one.children.reduce((all, c) => all + (leaves.get(c) || 0), 0),
      ),
    );
  const sector = new Map<number, [number, number]>([[tree[0].vertex, [0, 2 * Math.PI]]]);
  let deepest = 0;
  for (const { vertex, depth, children } of tree) {
    const [from, until] = sector.get(vertex) || [0, 0];
    const angle = (from + until) / 2;
    points[vertex] = { x: offset + Math.cos(angle) * depth * 90, y: Math.sin(angle) * depth * 90 };
    placed[vertex] = true;
    deepest = Math.max(deepest, depth);
    let begin = from;
    for (const child of children) {
      const width = ((until - from) * (leaves.get(child) || 1)) / (leaves.get(vertex) || 1);
      sector.set(child, [begin, begin + width]);
      begin += width;
    }
  }
  return (deepest + 1) * 200;
}

/** A vertex in the middle of the longest way: half way between two ends that are far apart. */
function middle(root: number, neighbours: number[][]): number {
  const there = breadthFirst(root, neighbours);
  const back = breadthFirst(there[there.length - 1].vertex, neighbours);
  const parents = new Map(
    back.flatMap(({ vertex, children }) => children.map((c) => [c, vertex] as const)),
  );
  let { vertex, depth } = back[back.length - 1];
  for (const half = Math.floor(depth / 2); depth > half; depth -= 1)
    vertex = parents.get(vertex) ?? vertex;
  return vertex;
}

interface Branch {
  vertex: number;
  depth: number;
  children: number[];
}

function breadthFirst(root: number, neighbours: number[][]): Branch[] {
  const order: Branch[] = [{ vertex: root, depth: 0, children: [] }];
  const seen = new Set([root]);
  for (let k = 0; k < order.length; k += 1) {
    for (const next of neighbours[order[k].vertex]) {
      if (seen.has(next)) continue;
      seen.add(next);
      order[k].children.push(next);
      order.push({ vertex: next, depth: order[k].depth + 1, children: [] });
    }
  }
  return order;
}

/** Turns points so that they are widest from left to right. */
function level(points: Point[]): Point[] {
  const count = Math.max(1, points.length);
  const x = points.reduce((all, p) => all + p.x, 0) / count;
  const y = points.reduce((all, p) => all + p.y, 0) / count;
  let [xx, xy, yy] = [0, 0, 0];
  for (const p of points) {
    xx += (p.x - x) ** 2;
    xy += (p.x - x) * (p.y - y);
    yy += (p.y - y) ** 2;
  }
  const angle = -0.5 * Math.atan2(2 * xy, xx - yy);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const turned = points.map((p) => ({
    x: (p.x - x) * cos - (p.y - y) * sin,
    y: (p.x - x) * sin + (p.y - y) * cos,
  }));
  // The first vertex of the file is on the left.
  const flip = turned.length && turned[0].x > 0 ? -1 : 1;
  return turned.map((p) => ({ x: round(p.x * flip), y: round(p.y * flip) }));
}

/** Tenths: more would differ between processors' last digits. */
function round(value: number): number {
  return Math.round(value * 10) / 10;
}
