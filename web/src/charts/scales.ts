/** Ranges, ticks and sums of charts over time. */
import type uPlot from 'uplot';

/** A column of values, one for each bin. */
export type Column = ArrayLike<number | null>;

/** Sums from below; the highest comes first, so that lower ones are drawn over it. Nothing is a gap. */
export function stacked(columns: Column[], bins: number): (number | null)[][] {
  const sum = new Array<number>(bins).fill(0);
  const shown = columns.map((column) =>
    Array.from({ length: bins }, (_, k) => {
      const value = column[k] || 0;
      sum[k] += value;
      return value ? sum[k] : null;
    }),
  );
  return shown.reverse();
}

export const wholeSteps = [1, 2, 5, 10, 20, 50].concat(
  [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].flatMap((n) => [n, 2 * n, 5 * n]),
);

/** Powers of ten in a range. */
export function decades(_u: uPlot, _axis: number, min: number, max: number): number[] {
  const first = Math.ceil(Math.log10(min) - 1e-9);
  const count = Math.floor(Math.log10(max) + 1e-9) - first + 1;
  return Array.from({ length: Math.max(1, count) }, (_, k) => 10 ** (first + k));
}

export function largest(column: Column, from: number, until: number): number {
  let most = -Infinity;
  for (let k = from; k < Math.min(until, column.length); k += 1) {
    const value = column[k];
    if (value !== null && value > most) most = value;
  }
  return most;
}

/** Whole powers of ten around the data. */
export function logRange(_u: uPlot, min: number | null, max: number | null): [number, number] {
  const low = 10 ** Math.floor(Math.log10(min || 1e3));
  const high = 10 ** Math.ceil(Math.log10((max || 1e6) * 1.01));
  return [low, Math.max(high, low * 10)];
}

export function label(value: number | null, format: (value: number) => string): string {
  return value === null ? '' : format(value);
}

/** `12 s`; from two minutes on `2:05`, with as many decimals as the steps need. */
export function clock(seconds: number, splits: number[]): string {
  const step = splits.length > 1 ? splits[1] - splits[0] : 1;
  const decimals = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));
  if (splits[splits.length - 1] < 120) return `${seconds.toFixed(decimals)} s`;
  const m = Math.floor(seconds / 60 + 1e-9);
  return `${m}:${Math.max(0, seconds - m * 60)
    .toFixed(decimals)
    .padStart(decimals ? decimals + 3 : 2, '0')}`;
}
