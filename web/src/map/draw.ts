/** The shapes of the map: two halves for each link, one for each direction, and signs for vertices. */
import type { MapLink, Vertex } from '../document/types';
import { svg } from '../dom/element';
import type { Point } from './layout';

export interface LinkShape {
  group: SVGGElement;
  hit: SVGPathElement;
  /** The halves: from the first end, from the second. */
  halves: [SVGPathElement, SVGPathElement];
  tips: [SVGPathElement, SVGPathElement];
  cut: SVGPathElement;
  /** Which of the links between the same two vertices it is, around zero. */
  bow: number;
}

export interface VertexShape {
  group: SVGGElement;
  label: SVGTextElement;
}

export function linkShapes(links: MapLink[]): LinkShape[] {
  const between = new Map<string, number>();
  const key = ({ ends: [a, b] }: MapLink) => `${Math.min(a, b)}-${Math.max(a, b)}`;
  for (const link of links) between.set(key(link), (between.get(key(link)) || 0) + 1);
  const seen = new Map<string, number>();
  return links.map((link) => {
    const place = seen.get(key(link)) || 0;
    seen.set(key(link), place + 1);
    const bow =
      (place - ((between.get(key(link)) || 1) - 1) / 2) * (link.ends[0] < link.ends[1] ? 1 : -1);
    return linkShape(bow);
  });
}

function linkShape(bow: number): LinkShape {
  const hit = svg('path', { class: 'hit' });
  const half = () => svg('path', { class: 'half' });
  const tip = () => svg('path', { class: 'tip' });
  const halves: [SVGPathElement, SVGPathElement] = [half(), half()];
  const tips: [SVGPathElement, SVGPathElement] = [tip(), tip()];
  const cut = svg('path', { class: 'cut' });
  const group = svg('g', { class: 'link', tabindex: 0, role: 'link' }, hit, halves, tips, cut);
  return { group, hit, halves, tips, cut, bow };
}

export function vertexShape(vertex: Vertex): VertexShape {
  const label = svg('text', { class: 'label' }, vertex.name);
  const sign = {
    node: () => svg('circle', { r: 6.5 }),
    router: () =>
      svg('rect', { x: -7, y: -7, width: 14, height: 14, rx: 3, transform: 'rotate(45)' }),
    lan: () => svg('rect', { x: -16, y: -5, width: 32, height: 10, rx: 5 }),
  }[vertex.kind]();
  return {
    group: svg('g', { class: `vertex ${vertex.kind}`, tabindex: 0, role: 'link' }, sign, label),
    label,
  };
}

/** Puts a link between two points of the screen. */
export function placeLink(shape: LinkShape, a: Point, b: Point): void {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = shape.bow * 26;
  const control = {
    x: (a.x + b.x) / 2 - (dy / length) * bend,
    y: (a.y + b.y) / 2 + (dx / length) * bend,
  };
  const middle = { x: (a.x + b.x) / 4 + control.x / 2, y: (a.y + b.y) / 4 + control.y / 2 };
  const angle = Math.atan2(dy, dx);
  shape.hit.setAttribute('d', `M${text(a)}Q${text(control)} ${text(b)}`);
  shape.halves[0].setAttribute('d', `M${text(a)}Q${text(between(a, control))} ${text(middle)}`);
  shape.halves[1].setAttribute('d', `M${text(b)}Q${text(between(b, control))} ${text(middle)}`);
  shape.tips[0].setAttribute('d', arrow(middle, angle));
  shape.tips[1].setAttribute('d', arrow(middle, angle + Math.PI));
  shape.cut.setAttribute('d', cross(middle));
}

function between(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

/** A tip that ends half a pixel before the middle. */
function arrow(end: Point, angle: number): string {
  const corner = (turn: number, size: number) => ({
    x: end.x - Math.cos(angle + turn) * size,
    y: end.y - Math.sin(angle + turn) * size,
  });
  return `M${text(corner(0, 0.5))}L${text(corner(0.5, 8))}L${text(corner(-0.5, 8))}Z`;
}

function cross({ x, y }: Point): string {
  return `M${text({ x: x - 6, y: y - 6 })}L${text({ x: x + 6, y: y + 6 })}M${text({ x: x - 6, y: y + 6 })}L${text({ x: x + 6, y: y - 6 })}`;
}

function text({ x, y }: Point): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
