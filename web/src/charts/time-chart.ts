/** A chart over the time of the run. All of them share range, cursor and marks through a `Timeline`. */
import uPlot from 'uplot';
import { at } from '../format';
import { announce } from '../dom/element';
import { rem } from '../theme/theme';
import { drawMarks, markLines, marksNear } from './marks';
import { steps } from './paths';
import { axis, entryLabel, Plot, seriesOf, type Line } from './plot';
import {
  clock,
  decades,
  label,
  largest,
  logRange,
  stacked,
  wholeSteps,
  type Column,
} from './scales';
import { hideTooltip, showTooltip } from './tooltip';
import type { Timeline } from './timeline';

export interface TimeOptions {
  title: string;
  format: (value: number) => string;
  log?: boolean;
  stacked?: boolean;
  /** Only whole numbers on the axis. */
  whole?: boolean;
  heightRem?: number;
}

/** What a chart shows: begins of bins with the end of the last one, and a column for each line. */
export interface TimeData {
  times: number[];
  lines: Line[];
  columns: Column[];
}

export class TimeChart {
  readonly plot: Plot;
  private data: TimeData = { times: [0, 1], lines: [], columns: [] };
  private pointed: number | undefined;
  private signature = '';
  private stale = false;
  private readonly watching: (() => void)[];

  constructor(
    private readonly options: TimeOptions,
    private readonly timeline: Timeline,
  ) {
    this.plot = new Plot(options.title, () => this.make(), options.heightRem);
    this.plot.shown = () => {
      if (this.stale) this.apply();
    };
    this.plot.stage.addEventListener('keydown', (event) => {
      this.key(event);
    });
    this.watching = [
      timeline.onRange(() => {
        this.rangeChanged();
      }),
      timeline.onMarks(() => {
        this.plot.u?.redraw(false);
      }),
      timeline.onCursor((seconds, from) => {
        if (from !== this) this.follow(seconds);
      }),
    ];
  }

  /** Takes it off the page. */
  remove(): void {
    for (const end of this.watching) end();
    this.plot.remove();
  }

  get element(): HTMLElement {
    return this.plot.element;
  }

  /** New data; the chart is made anew only where its lines are others. */
  set(data: TimeData): void {
    this.data = data;
    if (this.waits()) return;
    this.apply();
  }

  /** Whether nothing needs to be drawn before the chart is seen. */
  private waits(): boolean {
    this.stale = this.timeline.lazy && !this.plot.visible;
    return this.stale;
  }

  private apply(): void {
    const { data } = this;
    this.stale = false;
    const signature = JSON.stringify(data.lines);
    if (signature !== this.signature) {
      this.signature = signature;
      this.plot.setLines(data.lines, !this.options.stacked && data.lines.length > 1);
    } else {
      this.plot.u?.setData(this.aligned(), false);
      this.rangeChanged();
    }
    this.showValues();
  }

  private make(): uPlot {
    const u = new uPlot(this.config(), this.aligned(), this.plot.stage);
    const [min, max] = this.timeline.range;
    u.setScale('x', { min, max });
    return u;
  }

  private config(): uPlot.Options {
    const { options, timeline } = this;
    const lines = options.stacked ? [...this.data.lines].reverse() : this.data.lines;
    return {
      ...this.plot.size,
      padding: [Math.round(rem() * 0.6), Math.round(rem() * 1.2), 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, auto: false },
        y: options.log
          ? { distr: 3, range: logRange }
          : { range: (_u, _min, max) => this.linearRange(max) },
      },
      axes: [
        axis({
          values: (_u, splits) => splits.map((s) => clock(s, splits)),
          space: rem() * 4.5,
          size: rem() * 2,
        }),
        axis({
          size: rem() * 5.4,
          space: rem() * 2,
          splits: options.log ? decades : undefined,
          incrs: options.whole ? wholeSteps : undefined,
          values: (_u, splits) => splits.map((v) => label(v, options.format)),
        }),
      ],
      series: [{}, ...lines.map((line) => seriesOf(line, steps))],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        dataIdx: (u, _series, closest, x) =>
          u.data[0][closest] > x ? Math.max(0, closest - 1) : closest,
        bind: {
          dblclick: () => () => {
            timeline.reset();
            return null;
          },
        },
      },
      hooks: {
        draw: [
          (u) => {
            drawMarks(u, timeline);
          },
        ],
        setSelect: [
          (u) => {
            this.selected(u);
          },
        ],
        setCursor: [
          (u) => {
            this.moved(u);
          },
        ],
      },
    };
  }

  private aligned(): uPlot.AlignedData {
    const { times, columns } = this.data;
    const shown = this.options.stacked ? stacked(columns, times.length - 1) : columns;
    return [times, ...shown] as unknown as uPlot.AlignedData;
  }

  private linearRange(max: number | null): [number, number] {
    let top = max || 0;
    this.data.lines.forEach((line, index) => {
      if (!line.aside) return;
      const most = largest(this.data.columns[index], 0, this.data.times.length - 1);
      if (most <= top * 3) top = Math.max(top, most);
    });
    return [0, top > 0 ? top * 1.08 : 1];
  }

  private rangeChanged(): void {
    if (this.waits()) return;
    const [min, max] = this.timeline.range;
    this.plot.u?.setScale('x', { min, max });
    if (this.pointed === undefined) this.showValues();
  }

  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 4) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.timeline.show(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
  }

  private moved(u: uPlot): void {
    const left = u.cursor.left ?? -10;
    if (left < 0) {
      hideTooltip();
      this.point(undefined);
      return;
    }
    this.point(u.posToVal(left, 'x'));
    const near = marksNear(u, this.timeline, left);
    const place = u.over.getBoundingClientRect();
    if (near.length)
      showTooltip(place.left + left, place.top + (u.cursor.top ?? 0), markLines(near));
    else hideTooltip();
  }

  private point(seconds: number | undefined): void {
    this.pointed = seconds;
    this.showValues();
    this.timeline.point(seconds, this);
  }

  /** Follows the cursor of another chart. */
  private follow(seconds: number | undefined): void {
    this.pointed = seconds;
    const { u } = this.plot;
    u?.setCursor({ left: seconds === undefined ? -10 : u.valToPos(seconds, 'x'), top: 0 }, false);
    this.showValues();
  }

  private key(event: KeyboardEvent): void {
    const { u } = this.plot;
    if (!u || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move && event.shiftKey) this.timeline.pan(move * 0.25);
    else if (move) this.step(u, move);
    else if (event.key === '+' || event.key === '=') this.timeline.zoom(0.5, this.pointed);
    else if (event.key === '-') this.timeline.zoom(2, this.pointed);
    else if (event.key === '0' || event.key === 'Home') this.timeline.reset();
    else if (event.key === 'Escape') this.point(undefined);
    else return;
    event.preventDefault();
  }

  /** Moves the cursor by a bin, or by a pixel where bins are narrower. */
  private step(u: uPlot, direction: number): void {
    const [from, until] = this.timeline.range;
    const { times } = this.data;
    const width = Math.max(times[1] - times[0], (until - from) / Math.max(1, u.over.clientWidth));
    const before = this.pointed ?? (from + until) / 2;
    const next = Math.min(until, Math.max(from, before + direction * width));
    this.follow(next);
    this.timeline.point(next, this);
    announce(
      `${at(next * 1e9)}: ${this.plot.entries.map((entry) => `${entryLabel(this.data.lines, entry)} ${this.text(entry, (line) => this.data.columns[line][this.bin(next)])}`).join(', ')}`,
    );
  }

  private bin(seconds: number): number {
    const { times } = this.data;
    let [low, high] = [0, Math.max(0, times.length - 2)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (times[middle] <= seconds + 1e-9) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The value of a line, or the least and largest of all lines of a legend's entry. */
  private text(entry: number[], value: (line: number) => number | null | undefined): string {
    const values = entry
      .map(value)
      .filter((v): v is number => v !== null && v !== undefined && Number.isFinite(v));
    if (!values.length) return '–';
    const format = this.data.lines[entry[0]].format || this.options.format;
    const [low, high] = [format(Math.min(...values)), format(Math.max(...values))];
    return low === high ? low : `${low} … ${high}`;
  }

  private showValues(): void {
    const { lines, times, columns } = this.data;
    const entries = this.plot.entries;
    if (this.pointed === undefined) {
      const [from, until] = this.timeline.range.map((seconds) => this.bin(seconds));
      const texts = entries.map((entry) => {
        const most = this.text(entry, (line) => largest(columns[line], from, until + 1));
        return lines[entry[0]].aside || most === '–' ? most : `max ${most}`;
      });
      this.plot.values(texts);
      this.plot.when.textContent = '';
      this.plot.describe(
        `${entries.map((entry, k) => `${entryLabel(lines, entry)}: ${texts[k]}`).join('; ')}. ${keysHelp}`,
      );
    } else {
      const bin = this.bin(this.pointed);
      this.plot.values(entries.map((entry) => this.text(entry, (line) => columns[line][bin])));
      this.plot.when.textContent = at(times[bin] * 1e9);
    }
  }
}

const keysHelp =
  'Arrow keys move the cursor, Shift with arrow keys moves the range, plus and minus zoom, 0 shows the whole run.';
