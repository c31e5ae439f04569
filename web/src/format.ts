/** Numbers as text: SI units, three significant digits, no locale. */

const none = '–';

/** `1.23` with a prefix: `si(1234567, 'bit/s')` is `1.23 Mbit/s`. */
export function si(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  const size = Math.abs(value);
  const steps: [number, string][] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  for (const [factor, prefix] of steps) {
    if (size >= factor * 0.9995) return `${digits(value / factor)} ${prefix}${unit}`;
  }
  return unit ? `${digits(value)} ${unit}` : digits(value);
}

export function bits(value: number | null | undefined): string {
  return si(value, 'bit/s');
}

export function bytes(value: number | null | undefined): string {
  return si(value, 'B');
}

/** Nanoseconds as `350 ns`, `1.28 µs`, `20 ms`, `12.5 s`, `3 min 20 s`. */
export function ns(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  const size = Math.abs(value);
  if (size >= 120e9) return minutes(value / 1e9);
  if (size >= 0.9995e9) return `${digits(value / 1e9)} s`;
  if (size >= 0.9995e6) return `${digits(value / 1e6)} ms`;
  if (size >= 0.9995e3) return `${digits(value / 1e3)} µs`;
  return `${digits(value)} ns`;
}

function minutes(seconds: number): string {
  const sign = seconds < 0 ? '−' : '';
  const whole = Math.round(Math.abs(seconds));
  const hours = Math.floor(whole / 3600);
  const left = `${Math.floor((whole % 3600) / 60)} min ${whole % 60} s`;
  return hours ? `${sign}${hours} h ${left}` : sign + left;
}

/** A time of the run: `12.345 s`; with minutes from two minutes on: `2:05.300`. */
export function at(nanoseconds: number): string {
  const seconds = nanoseconds / 1e9;
  if (seconds < 120) return `${seconds.toFixed(3)} s`;
  const m = Math.floor(seconds / 60);
  return `${m}:${(seconds - m * 60).toFixed(3).padStart(6, '0')}`;
}

/** Three significant digits, without trailing zeros. */
export function digits(value: number): string {
  if (value === 0) return '0';
  if (Math.abs(value) >= 999.5) return grouped(Math.round(value));
  return String(Number(value.toPrecision(3))).replace('-', '−');
}

/** A whole number with thin spaces: `328 799`. */
export function grouped(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  return String(Math.round(value))
    .replace('-', '−')
    .replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return none;
  return `${digits(share * 100)} %`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A value of a measure in its unit. */
export function inUnit(value: number | null | undefined, unit: string): string {
  if (unit === 'ns') return ns(value);
  if (unit === '1' || unit === '')
    return value === null || value === undefined ? none : digits(value);
  return si(value, unit);
}

/** `2026-11-24 20:18:11 UTC`. */
export function moment(unixSeconds: number): string {
  return `${new Date(unixSeconds * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const rateUnits: Record<string, number> = {
  bit: 1,
  kbit: 1e3,
  mbit: 1e6,
  gbit: 1e9,
  tbit: 1e12,
  bps: 8,
  kbps: 8e3,
  mbps: 8e6,
  gbps: 8e9,
};

/** `10mbit` of a scenario file in bit/s. */
export function parseRate(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined;
  const found = /^\s*([\d.]+)\s*([a-z]+)\s*$/i.exec(text);
  const unit = found ? rateUnits[found[2].toLowerCase()] : undefined;
  return found && unit ? Number(found[1]) * unit : undefined;
}

const timeUnits: Record<string, number> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
};

/** `20ms` of a scenario file in nanoseconds. */
export function parseTime(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined;
  const found = /^\s*([\d.]+)\s*(ns|us|µs|ms|s|min|h)\s*$/.exec(text);
  return found ? Number(found[1]) * timeUnits[found[2]] : undefined;
}

/** `1%` or `none` of a scenario file as a share of 1. */
export function parseShare(text: unknown): number | undefined {
  if (text === 'none') return 0;
  if (typeof text !== 'string') return undefined;
  const found = /^\s*([\d.]+)\s*%\s*$/.exec(text);
  return found ? Number(found[1]) / 100 : undefined;
}
