/** The topology: laid out once, placed on the screen at each size, coloured at each change. */
import type { MapLink, Vertex } from '../document/types';
import { fill, h, svg } from '../dom/element';
import { rem } from '../theme/theme';
import { hideTooltip, showTooltip } from '../charts/tooltip';
import { linkShapes, placeLink, vertexShape, type LinkShape, type VertexShape } from './draw';
import { placeLabels } from './labels';
import { layout, type Point } from './layout';
import { View } from './view';

export interface MapActions {
  link: (index: number) => void;
  vertex: (index: number) => void;
  linkTip: (index: number) => Node[];
  vertexTip: (index: number) => Node[];
  linkLabel: (index: number) => string;
}

export class TopologyMap {
  readonly element: HTMLElement;
  readonly view: View;
  private readonly canvas = svg('svg', {
    'class': 'map-canvas',
    'role': 'group',
    'aria-label': 'Map of the network',
  });
  private vertices: Vertex[] = [];
  private links: MapLink[] = [];
  private points: Point[] = [];
  private linkParts: LinkShape[] = [];
  private vertexParts: VertexShape[] = [];
  private neighbours: number[][] = [];
  private signature = '';

  constructor(private readonly actions: MapActions) {
    this.element = h('div', { class: 'map' }, this.canvas);
    this.view = new View(this.canvas, () => {
      this.place();
    });
    this.element.append(this.view.controls);
    new ResizeObserver(() => {
      this.view.resize();
    }).observe(this.element);
  }

  /** A network; it is laid out anew only where vertices or ends of links are others. */
  set(vertices: Vertex[], links: MapLink[]): void {
    this.vertices = vertices;
    this.links = links;
    const signature = JSON.stringify([
      vertices.map((v) => [v.name, v.kind]),
      links.map((l) => [l.name, ...l.ends]),
    ]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.points = layout(vertices, links);
    this.neighbours = vertices.map((_, index) =>
      links.filter((l) => l.ends.includes(index)).map(({ ends: [a, b] }) => (a === index ? b : a)),
    );
    this.linkParts = linkShapes(links);
    this.vertexParts = vertices.map(vertexShape);
    this.canvas.classList.toggle('many', links.length > 60);
    this.linkParts.forEach((part, index) => {
      this.wire(
        part.group,
        () => this.actions.linkTip(index),
        () => {
          this.actions.link(index);
        },
      );
    });
    this.vertexParts.forEach((part, index) => {
      part.group.setAttribute('aria-label', `${vertices[index].kind} ${vertices[index].name}`);
      this.wire(
        part.group,
        () => this.actions.vertexTip(index),
        () => {
          this.actions.vertex(index);
        },
      );
    });
    fill(
      this.canvas,
      this.linkParts.map((p) => p.group),
      this.vertexParts.map((p) => p.group),
    );
    this.view.bounds(this.points);
    this.relabel();
  }

  /** The levels of both directions of a link: a change of attributes, nothing is laid out. */
  paint(link: number, levels: [string, string], down: boolean): void {
    const part = this.linkParts[link] as LinkShape | undefined;
    if (!part) return;
    levels.forEach((level, way) => {
      if (part.halves[way].dataset.level === level) return;
      part.halves[way].dataset.level = level;
      part.tips[way].dataset.level = level;
    });
    if (part.group.classList.contains('down') !== down) part.group.classList.toggle('down', down);
  }

  /** The state of a vertex, such as `absent` or `failed`. */
  mark(vertex: number, state: string): void {
    const part = this.vertexParts[vertex] as VertexShape | undefined;
    if (part && (part.group.dataset.state || '') !== state) part.group.dataset.state = state;
  }

  select(link: number | undefined, vertex?: number): void {
    this.linkParts.forEach((part, index) => {
      part.group.classList.toggle('chosen', index === link);
    });
    this.vertexParts.forEach((part, index) => {
      part.group.classList.toggle('chosen', index === vertex);
    });
  }

  /** Texts for assistive technology, of figures that have changed. */
  relabel(): void {
    this.linkParts.forEach((part, index) => {
      part.group.setAttribute('aria-label', this.actions.linkLabel(index));
    });
  }

  private place(): void {
    const on = this.points.map((point) => this.view.screen(point));
    this.links.forEach((link, index) => {
      placeLink(this.linkParts[index], on[link.ends[0]], on[link.ends[1]]);
    });
    this.vertexParts.forEach((part, index) => {
      part.group.setAttribute(
        'transform',
        `translate(${on[index].x.toFixed(1)},${on[index].y.toFixed(1)})`,
      );
    });
    const importance = this.vertices.map((vertex, index) => ({
      index,
      weight: (vertex.kind === 'node' ? 0 : 1000) + this.neighbours[index].length,
    }));
    placeLabels(
      this.vertexParts,
      on,
      this.neighbours,
      this.vertices,
      importance,
      rem(),
      this.view.size,
    );
  }

  private wire(group: SVGGElement, tip: () => Node[], act: () => void): void {
    const show = (x: number, y: number) => {
      showTooltip(x, y, ...tip());
    };
    group.addEventListener('pointermove', (event) => {
      show(event.clientX, event.clientY);
    });
    group.addEventListener('pointerleave', hideTooltip);
    group.addEventListener('focus', () => {
      if (!group.matches(':focus-visible')) return;
      const box = group.getBoundingClientRect();
      show(box.left + box.width / 2, box.top + box.height / 2);
    });
    group.addEventListener('blur', hideTooltip);
    group.addEventListener('click', () => {
      hideTooltip();
      if (!this.view.dragged) act();
    });
    group.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') hideTooltip();
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      hideTooltip();
      act();
    });
  }
}
