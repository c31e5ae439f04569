/** Paths of binned values: each is drawn over the whole of its bin, and what shares a pixel is merged. */
import uPlot from 'uplot';

interface Pen {
  stroke: Path2D;
  fill: Path2D;
  base: number;
  /** Where the present piece began; absent while there is a gap. */
  from?: number;
  y: number;
  /** How far the last bin reached. */
  held: number;
}

/** Steps with fills. Bins narrower than a pixel become one line from their least to their largest value. */
export const steps: uPlot.Series.PathBuilder = (u, series, first, last) => {
  const xs = u.data[0];
  const ys = u.data[series] as (number | null | undefined)[];
  const scale = u.series[series].scale || 'y';
  const pen: Pen = {
    stroke: new Path2D(),
    fill: new Path2D(),
    base: u.bbox.top + u.bbox.height,
    y: 0,
    held: 0,
  };
  const toX = (value: number) => Math.round(u.valToPos(value, 'x', true));
  const toY = (value: number) => Math.round(u.valToPos(value, scale, true) * 2) / 2;
  let k = Math.max(0, first - 1);
  const end = Math.min(xs.length - 2, last);
  while (k <= end) {
    const x = toX(xs[k]);
    let least = Infinity;
    let largest = -Infinity;
    let newest: number | undefined;
    do {
      const value = ys[k];
      if (value !== null && value !== undefined) {
        if (value < least) least = value;
        if (value > largest) largest = value;
        newest = value;
      }
      k += 1;
    } while (k <= end && toX(xs[k]) <= x);
    if (newest === undefined) lift(pen);
    else {
      draw(pen, x, toY(newest), toY(least), toY(largest));
      hold(pen, Math.max(x + 1, toX(xs[k])));
    }
  }
  lift(pen);
  return { stroke: pen.stroke, fill: pen.fill, flags: 0 };
};

function draw(pen: Pen, x: number, y: number, low: number, high: number): void {
  if (pen.from === undefined) {
    pen.from = x;
    pen.stroke.moveTo(x, y);
    pen.fill.moveTo(x, pen.base);
  } else {
    pen.stroke.lineTo(x, pen.y);
  }
  if (low !== high) {
    pen.stroke.lineTo(x, low);
    pen.stroke.lineTo(x, high);
    pen.fill.lineTo(x, high);
  }
  pen.stroke.lineTo(x, y);
  pen.fill.lineTo(x, y);
  pen.y = y;
}

/** Goes on at the same height until the bin ends. */
function hold(pen: Pen, until: number): void {
  pen.stroke.lineTo(until, pen.y);
  pen.fill.lineTo(until, pen.y);
  pen.held = until;
}

/** Ends a piece, at a gap or at the end. */
function lift(pen: Pen): void {
  if (pen.from === undefined) return;
  pen.fill.lineTo(pen.held, pen.base);
  pen.fill.closePath();
  pen.from = undefined;
}
