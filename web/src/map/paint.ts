/** Which colour a link direction has on the map, and what the legend says. */
import type { Figures } from '../document/view';
import { ns, percent } from '../format';

export type Paint = 'use' | 'drops' | 'lateness';

export const paints: { value: Paint; label: string }[] = [
  { value: 'use', label: 'Utilisation' },
  { value: 'drops', label: 'Drops' },
  { value: 'lateness', label: 'Lateness' },
];

const limits: Record<Paint, number[]> = {
  use: [0.25, 0.5, 0.75, 0.9],
  drops: [0.0001, 0.001, 0.01, 0.05],
  lateness: [1e5, 1e6, 5e6, 2e7],
};

/** `idle`, `free` (active without a rate) or a level from 1 to 5. */
export function levelOf(paint: Paint, figures: Figures): string {
  if (!figures.active) return 'idle';
  const value = { use: figures.use, drops: figures.droppedShare, lateness: figures.latenessNs }[
    paint
  ];
  if (value === undefined) return 'free';
  return String(1 + limits[paint].filter((limit) => value >= limit).length);
}

/** Texts of the levels, from the lowest. */
export function levels(paint: Paint): [string, string][] {
  const text = (value: number) => (paint === 'lateness' ? ns(value) : percent(value));
  const bounds = limits[paint];
  const rows: [string, string][] = [
    ['idle', 'idle'],
    ['1', `< ${text(bounds[0])}`],
  ];
  for (let k = 1; k < bounds.length; k += 1) rows.push([String(k + 1), `< ${text(bounds[k])}`]);
  rows.push(['5', `≥ ${text(bounds[bounds.length - 1])}`]);
  if (paint === 'use') rows.push(['free', 'no rate asked']);
  return rows;
}

/** What the ranking sorts by; absent: nothing to rank. */
export function amountOf(paint: Paint, figures: Figures): number | undefined {
  if (!figures.active) return undefined;
  return {
    use: figures.use,
    drops: figures.droppedShare || undefined,
    lateness: figures.latenessNs || undefined,
  }[paint];
}

export function valueOf(paint: Paint, figures: Figures): string {
  if (!figures.active) return 'idle';
  if (paint === 'drops') return `${share(figures.droppedShare)} dropped`;
  if (paint === 'lateness') return `${ns(figures.latenessNs)} late at most`;
  return figures.use === undefined ? 'no rate asked' : `${share(figures.use)} used`;
}

function share(value: number): string {
  return value > 0 && value < 0.001 ? '< 0.1 %' : percent(value);
}
