/** How the map lies on the screen: fitted, moved by dragging, closer by buttons, keys or the wheel with Ctrl. */
import { button, h } from '../dom/element';
import type { Point } from './layout';

const margin = { x: 46, y: 34 };

export class View {
  readonly controls: HTMLElement;
  /** Whether the last press moved the map, so that it is no click. */
  dragged = false;
  size = { width: 0, height: 0 };
  private scale = 1;
  private fitted = 1;
  private centre: Point = { x: 0, y: 0 };
  private box = { left: 0, right: 0, top: 0, bottom: 0 };
  private moved = false;

  constructor(
    private readonly canvas: SVGSVGElement,
    private readonly changed: () => void,
  ) {
    this.controls = h(
      'div',
      { class: 'map-controls' },
      button(
        '+',
        () => {
          this.zoom(1.4);
        },
        { 'aria-label': 'Map: closer' },
      ),
      button(
        '−',
        () => {
          this.zoom(1 / 1.4);
        },
        { 'aria-label': 'Map: farther' },
      ),
      button(
        'Fit',
        () => {
          this.fit();
        },
        { 'aria-label': 'Map: show all' },
      ),
    );
    canvas.addEventListener('pointerdown', (event) => {
      this.press(event);
    });
    canvas.addEventListener(
      'wheel',
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
      },
      { passive: false },
    );
  }

  bounds(points: Point[]): void {
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    this.box = {
      left: Math.min(0, ...xs),
      right: Math.max(0, ...xs),
      top: Math.min(0, ...ys),
      bottom: Math.max(0, ...ys),
    };
    if (points.length)
      this.box = {
        left: Math.min(...xs),
        right: Math.max(...xs),
        top: Math.min(...ys),
        bottom: Math.max(...ys),
      };
    this.measure();
    this.fit();
  }

  resize(): void {
    this.measure();
    if (this.moved) this.changed();
    else this.fit();
  }

  screen({ x, y }: Point): Point {
    return {
      x: this.size.width / 2 + (x - this.centre.x) * this.scale,
      y: this.size.height / 2 + (y - this.centre.y) * this.scale,
    };
  }

  fit(): void {
    const { left, right, top, bottom } = this.box;
    const { width, height } = this.size;
    if (!width || !height) return;
    this.centre = { x: (left + right) / 2, y: (top + bottom) / 2 };
    this.fitted = Math.min(
      2.2,
      (width - 2 * margin.x) / Math.max(1, right - left),
      (height - 2 * margin.y) / Math.max(1, bottom - top),
    );
    this.scale = this.fitted;
    this.moved = false;
    this.changed();
  }

  private zoom(factor: number): void {
    this.scale = Math.min(this.fitted * 12, Math.max(this.fitted * 0.5, this.scale * factor));
    this.moved = true;
    this.changed();
  }

  private measure(): void {
    this.size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  private press(start: PointerEvent): void {
    if (start.button !== 0) return;
    this.dragged = false;
    let last = start;
    const move = (event: PointerEvent) => {
      if (
        !this.dragged &&
        Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) < 5
      )
        return;
      this.dragged = true;
      this.moved = true;
      this.centre.x -= (event.clientX - last.clientX) / this.scale;
      this.centre.y -= (event.clientY - last.clientY) / this.scale;
      last = event;
      this.changed();
    };
    const release = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', release);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', release);
  }
}
