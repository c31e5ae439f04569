/** The frame of every chart: title, legend with values, a canvas that follows size and theme. */
import uPlot from 'uplot';
import { button, freshId, h } from '../dom/element';
import { colour, faded, onTheme, rem } from '../theme/theme';

/** One line of a chart. */
export interface Line {
  label: string;
  /** A custom property of the style sheet. */
  colour: string;
  width?: number;
  dash?: number[];
  /** Opacity of the area below. */
  fill?: number;
  /** Not what the axis is chosen by, such as an asked rate far above what was sent. */
  aside?: boolean;
  format?: (value: number) => string;
  hidden?: boolean;
  /** Lines of the same group have one entry in the legend. */
  group?: string;
}

interface Legend {
  item: HTMLElement;
  value: HTMLElement;
}

const plots = new Set<Plot>();
let watchesTheme = false;

export class Plot {
  readonly element: HTMLElement;
  readonly stage: HTMLElement;
  readonly when = h('output', { class: 'chart-at' });
  readonly tools = h('span', { class: 'chart-tools' });
  u: uPlot | undefined;
  visible = true;
  /** Called when the chart has come into view. */
  shown: (() => void) | undefined;
  private readonly legend = h('ul', { class: 'legend' });
  private readonly summary = h('p', { class: 'unseen', id: freshId('summary') });
  private items: Legend[] = [];
  /** Lines of each entry of the legend. */
  entries: number[][] = [];
  private lines: Line[] = [];
  private readonly heading: HTMLElement;

  /** `make` draws the chart; it is called when there is a size, and when lines have changed. */
  constructor(
    title: string,
    private readonly make: (plot: Plot) => uPlot,
    private readonly heightRem = 11,
  ) {
    const id = freshId('chart');
    this.heading = h('h3', { id }, title);
    this.stage = h('div', {
      'class': 'stage',
      'tabindex': 0,
      'role': 'application',
      'aria-roledescription': 'chart',
      'aria-labelledby': id,
      'aria-describedby': this.summary.id,
    });
    this.stage.style.height = `${heightRem}rem`;
    this.element = h(
      'figure',
      { class: 'chart' },
      h(
        'figcaption',
        null,
        h('div', { class: 'chart-head' }, this.heading, this.tools, this.when),
        this.legend,
      ),
      this.stage,
      this.summary,
    );
    new ResizeObserver(() => {
      this.fit();
    }).observe(this.stage);
    new IntersectionObserver((seen) => {
      this.visible = seen[seen.length - 1].isIntersecting;
      if (this.visible) this.shown?.();
    }).observe(this.stage);
    plots.add(this);
    if (!watchesTheme) onTheme(redrawAll);
    watchesTheme = true;
  }

  title(text: string): void {
    this.heading.textContent = text;
  }

  /** New lines: the legend is made anew and the chart as well. */
  setLines(lines: Line[], toggles: boolean): void {
    this.lines = lines;
    this.entries = grouped(lines);
    this.items = this.entries.map((entry) => this.legendItem(entry, toggles));
    this.legend.replaceChildren(...this.items.map((one) => one.item));
    this.remake();
  }

  /** The values beside the names, one for each entry. */
  values(texts: string[]): void {
    texts.forEach((text, index) => {
      const item = this.items[index] as Legend | undefined;
      if (item && item.value.textContent !== text) item.value.textContent = text;
    });
  }

  describe(text: string): void {
    this.summary.textContent = text;
  }

  remake(): void {
    this.u?.destroy();
    this.u = undefined;
    this.fit();
  }

  remove(): void {
    plots.delete(this);
    this.u?.destroy();
    this.element.remove();
  }

  get size(): { width: number; height: number } {
    return {
      width: Math.max(120, Math.floor(this.stage.clientWidth)),
      height: Math.max(80, Math.floor(this.heightRem * rem())),
    };
  }

  private fit(): void {
    if (!this.lines.length || !this.stage.isConnected || this.stage.clientWidth === 0) return;
    const { width, height } = this.size;
    if (!this.u) this.u = this.make(this);
    else if (this.u.width !== width || this.u.height !== height) this.u.setSize({ width, height });
  }

  private legendItem(entry: number[], toggles: boolean): Legend {
    const value = h('b');
    const line = this.lines[entry[0]];
    const name = entryLabel(this.lines, entry);
    const swatch = h('i', {
      class: line.dash ? 'swatch dashed' : 'swatch',
      style: { '--c': `var(--${line.colour})` },
    });
    if (!toggles) return { value, item: h('li', null, swatch, name, ' ', value) };
    const control = button(
      '',
      () => {
        line.hidden = !line.hidden;
        control.setAttribute('aria-pressed', String(!line.hidden));
        for (const index of entry) this.u?.setSeries(index + 1, { show: !line.hidden });
      },
      { 'class': 'legend-toggle', 'aria-pressed': String(!line.hidden), 'title': 'Show or hide' },
    );
    control.append(swatch, name, ' ', value);
    return { value, item: h('li', null, control) };
  }
}

/** Indices of lines by their group; a line without one is by itself. */
function grouped(lines: Line[]): number[][] {
  const entries = new Map<string, number[]>();
  lines.forEach((line, index) => {
    const key = line.group === undefined ? `line ${index}` : `group ${line.group}`;
    entries.set(key, [...(entries.get(key) || []), index]);
  });
  return [...entries.values()];
}

export function entryLabel(lines: Line[], entry: number[]): string {
  const { group, label } = lines[entry[0]];
  return group !== undefined && entry.length > 1 ? `${group} (${entry.length} runs)` : label;
}

function redrawAll(): void {
  for (const plot of plots) plot.u?.redraw(false, true);
}

/** A series of uPlot for a line; colours are asked for at each drawing, so that themes change them. */
export function seriesOf(line: Line, paths?: uPlot.Series.PathBuilder): uPlot.Series {
  return {
    label: line.label,
    show: !line.hidden,
    auto: !line.aside,
    stroke: () => colour(line.colour),
    width: line.width ?? 1.5,
    dash: line.dash,
    fill: line.fill ? () => faded(line.colour, line.fill as number) : undefined,
    paths,
    points: { show: false },
  };
}

/** What axes have in common. */
export function axis(more: uPlot.Axis): uPlot.Axis {
  const font = `${Math.round(rem() * 0.78)}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`;
  return {
    stroke: () => colour('text-soft'),
    font,
    grid: { stroke: () => colour('grid'), width: 1 },
    ticks: { stroke: () => colour('grid'), width: 1, size: 4 },
    gap: 4,
    ...more,
  };
}
