/** Distributions as cumulative shares over a logarithmic axis, linear or as tails ("nines"). */
import uPlot from 'uplot';
import type { Distribution } from '../document/types';
import { ns } from '../format';
import { rem } from '../theme/theme';
import { axis, Plot, seriesOf, type Line } from './plot';

export type CdfScale = 'tail' | 'linear';

/** The least value that has at least this share of all at or below it. */
export function quantile(distribution: Distribution, share: number): number {
  const wanted = share * distribution.count;
  let seen = 0;
  for (const [value, count] of distribution.bins) {
    seen += count;
    if (seen >= wanted - 1e-9) return Math.min(value, distribution.max_ns || value);
  }
  return distribution.max_ns;
}

/** All values of several distributions as one. */
export function together(name: string, all: Distribution[]): Distribution {
  const counts = new Map<number, number>();
  for (const one of all)
    for (const [value, count] of one.bins) counts.set(value, (counts.get(value) || 0) + count);
  return {
    name,
    count: all.reduce((sum, one) => sum + one.count, 0),
    max_ns: all.reduce((most, one) => Math.max(most, one.max_ns), 0),
    bins: [...counts].sort((a, b) => a[0] - b[0]),
  };
}

export interface Curve {
  label: string;
  colour: string;
  dash?: number[];
  group?: string;
  distribution: Distribution;
}

export class CdfChart {
  readonly plot: Plot;
  private curves: Curve[] = [];
  private scale: CdfScale = 'tail';

  constructor(title: string) {
    this.plot = new Plot(title, () => this.make(), 17);
  }

  set(curves: Curve[], scale: CdfScale): void {
    this.curves = curves;
    this.scale = scale;
    const lines: Line[] = curves.map(({ label, colour, dash, group }) => ({
      label,
      colour,
      dash,
      group,
    }));
    this.plot.setLines(lines, false);
    this.plot.values(this.plot.entries.map(() => ''));
    this.plot.describe(
      curves
        .map(
          (curve) =>
            `${curve.label}: half at or below ${ns(quantile(curve.distribution, 0.5))}, ` +
            `99 % at or below ${ns(quantile(curve.distribution, 0.99))}`,
        )
        .join('; '),
    );
  }

  private make(): uPlot {
    const { scale } = this;
    return new uPlot(
      {
        ...this.plot.size,
        padding: [Math.round(rem() * 0.6), Math.round(rem() * 1.6), 0, 0],
        legend: { show: false },
        scales: {
          x: { time: false, distr: 3, range: (_u, min, max) => [min / 1.15, max * 1.15] },
          y: { range: () => [0, scale === 'tail' ? tailEnd(this.curves) : 1] },
        },
        axes: [
          axis({
            values: (_u, splits) => splits.map((v) => ns(v)),
            splits: roundValues,
            filter: (_u, splits) => splits,
            size: rem() * 2,
          }),
          axis({
            size: rem() * 4.6,
            splits: (_u, _i, _min, max) =>
              (scale === 'tail' ? shares : quarters)
                .map((s) => place(s, scale))
                .filter((y) => y <= max + 1e-9),
            values: (_u, splits) => splits.map((y) => shareText(shareAt(y, scale))),
          }),
        ],
        series: [
          {},
          ...this.curves.map((curve) =>
            seriesOf(
              { label: curve.label, colour: curve.colour, dash: curve.dash, width: 1.75 },
              uPlot.paths.stepped?.({ align: 1 }),
            ),
          ),
        ],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        hooks: {
          setCursor: [
            (u) => {
              this.read(u);
            },
          ],
        },
      },
      this.aligned(),
      this.plot.stage,
    );
  }

  private aligned(): uPlot.AlignedData {
    const places = new Set<number>();
    for (const { distribution } of this.curves)
      for (const [value] of distribution.bins) places.add(Math.max(value, floorNs));
    const xs = [...places].sort((a, b) => a - b);
    // One more on either side, so that curves begin at zero and the last step is seen.
    xs.unshift(xs[0] / 1.1);
    xs.push(xs[xs.length - 1] * 1.1);
    return [
      xs,
      ...this.curves.map((curve) =>
        cumulative(curve.distribution, xs).map((s) => place(s, this.scale)),
      ),
    ] as uPlot.AlignedData;
  }

  private read(u: uPlot): void {
    const left = u.cursor.left ?? -10;
    const bin = u.cursor.idx;
    if (left < 0 || bin === null || bin === undefined) {
      this.plot.when.textContent = '';
      this.plot.values(this.plot.entries.map(() => ''));
      return;
    }
    this.plot.when.textContent = `at or below ${ns(u.data[0][bin])}`;
    this.plot.values(
      this.plot.entries.map((entry) => {
        const shares = entry.map((k) => shareAt(u.data[k + 1][bin] as number, this.scale));
        const [low, high] = [shareText(Math.min(...shares)), shareText(Math.max(...shares))];
        return low === high ? low : `${low} … ${high}`;
      }),
    );
  }
}

/** Values below are shown here: a logarithmic axis has no zero. */
const floorNs = 100;
const quarters = [0, 0.25, 0.5, 0.75, 0.9, 1];
const shares = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/** Shares at or below each place. */
function cumulative(distribution: Distribution, xs: number[]): number[] {
  let k = 0;
  let seen = 0;
  const total = distribution.count || 1;
  return xs.map((x) => {
    while (k < distribution.bins.length && Math.max(distribution.bins[k][0], floorNs) <= x) {
      seen += distribution.bins[k][1];
      k += 1;
    }
    return seen / total;
  });
}

/** The height of a share: as it is, or by the number of nines. */
function place(share: number, scale: CdfScale): number {
  return scale === 'linear' ? share : -Math.log10(Math.max(1e-6, 1 - share));
}

function shareAt(y: number, scale: CdfScale): number {
  return scale === 'linear' ? y : 1 - 10 ** -y;
}

/** `99.97 %`: as many digits as tell it from 100 %. */
function shareText(share: number): string {
  return `${Number((share * 100).toFixed(share > 0.999 ? 4 : share > 0.99 ? 3 : 1))} %`;
}

/** 1, 2 and 5 times powers of ten; fewer where there are many decades. */
function roundValues(u: uPlot, _axis: number, min: number, max: number): number[] {
  const room = Math.max(2, u.width / (rem() * 4.5));
  const span = Math.log10(max / min);
  if (span < 0.8) return evenly(min, max, room / 2);
  const steps = span * 3 <= room ? [1, 2, 5] : span * 2 <= room ? [1, 3] : [1];
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power += 1) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= min && value <= max) found.push(value);
    }
  }
  return found;
}

/** Round values at equal distances, for less than a decade. */
function evenly(min: number, max: number, count: number): number[] {
  const rough = (max - min) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power * 10;
  const first = Math.ceil(min / step);
  return Array.from(
    { length: Math.max(1, Math.floor(max / step) - first + 1) },
    (_, k) => (first + k) * step,
  );
}

/** How many nines the largest number of values can show. */
function tailEnd(curves: Curve[]): number {
  const most = Math.max(10, ...curves.map((curve) => curve.distribution.count));
  return Math.min(5.2, Math.max(2.2, Math.log10(most) + 0.1));
}
