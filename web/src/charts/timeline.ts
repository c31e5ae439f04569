/** What all charts over time share: the range that is shown, the marks, and which kinds are hidden. */
import type { Mark, MarkKind } from '../document/types';

export type Range = [number, number];

export const markKinds: MarkKind[] = [
  'fault',
  'change',
  'service',
  'limit',
  'late',
  'program',
  'run',
  'other',
];

export class Timeline {
  full: Range;
  range: Range;
  marks: Mark[] = [];
  readonly hidden = new Set<MarkKind>();
  /** Whether charts out of view wait until they are seen, as in live mode. */
  lazy = false;
  /** Called where a person chose the range. */
  touched: ((whole: boolean) => void) | undefined;
  private readonly rangeWatchers = new Set<() => void>();
  private readonly markWatchers = new Set<() => void>();
  private readonly cursorWatchers = new Set<(seconds: number | undefined, from: unknown) => void>();

  constructor(endS: number) {
    this.full = [0, endS];
    this.range = [0, endS];
  }

  get zoomed(): boolean {
    return this.range[0] > this.full[0] || this.range[1] < this.full[1];
  }

  /** Calls back when the range has changed. What comes back ends that; so do the two below. */
  onRange(watcher: () => void): () => void {
    return watch(this.rangeWatchers, watcher);
  }

  onMarks(watcher: () => void): () => void {
    return watch(this.markWatchers, watcher);
  }

  onCursor(watcher: (seconds: number | undefined, from: unknown) => void): () => void {
    return watch(this.cursorWatchers, watcher);
  }

  /** The cursor is at a time, or nowhere. `from` is the chart that it is on. */
  point(seconds: number | undefined, from: unknown): void {
    for (const watcher of this.cursorWatchers) watcher(seconds, from);
  }

  /** Shows a span, kept inside of the run and not shorter than a millisecond. */
  show(from: number, until: number): void {
    const [begin, end] = this.full;
    const width = Math.min(end - begin, Math.max(1e-3, until - from));
    const start = Math.min(Math.max(begin, from), end - width);
    if (start === this.range[0] && start + width === this.range[1]) return;
    this.range = [start, start + width];
    this.touched?.(!this.zoomed);
    for (const watcher of this.rangeWatchers) watcher();
  }

  reset(): void {
    this.show(...this.full);
  }

  /** Below 1 goes closer. */
  zoom(factor: number, around = (this.range[0] + this.range[1]) / 2): void {
    const [from, until] = this.range;
    this.show(around - (around - from) * factor, around + (until - around) * factor);
  }

  /** Moves by a share of what is shown. */
  pan(share: number): void {
    const [from, until] = this.range;
    const width = until - from;
    const start = Math.min(Math.max(this.full[0], from + share * width), this.full[1] - width);
    this.show(start, start + width);
  }

  /** New ends of the run, in live mode. */
  extend(full: Range, range: Range): void {
    this.full = full;
    this.range = range;
    for (const watcher of this.rangeWatchers) watcher();
  }

  toggle(kind: MarkKind, shown: boolean): void {
    if (shown) this.hidden.delete(kind);
    else this.hidden.add(kind);
    this.marksChanged();
  }

  marksChanged(): void {
    for (const watcher of this.markWatchers) watcher();
  }

  visibleMarks(): Mark[] {
    return this.hidden.size ? this.marks.filter((mark) => !this.hidden.has(mark.kind)) : this.marks;
  }
}

function watch<T>(watchers: Set<T>, watcher: T): () => void {
  watchers.add(watcher);
  return () => {
    watchers.delete(watcher);
  };
}
