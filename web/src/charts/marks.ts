/** Events and faults as lines over a chart. */
import type uPlot from 'uplot';
import type { Mark, MarkKind } from '../document/types';
import { at } from '../format';
import { h } from '../dom/element';
import { colour } from '../theme/theme';
import type { Timeline } from './timeline';

/** Draws the marks that are in view; of those of one kind that share a pixel, one. */
export function drawMarks(u: uPlot, timeline: Timeline): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio || 1;
  const drawn = new Set<string>();
  ctx.save();
  ctx.lineWidth = Math.max(1, Math.round(ratio));
  for (const mark of timeline.visibleMarks()) {
    const x = Math.round(u.valToPos(mark.at_ns / 1e9, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const place = `${mark.kind}${x}`;
    if (drawn.has(place)) continue;
    drawn.add(place);
    drawMark(ctx, mark.kind, x, bbox, ratio);
  }
  ctx.restore();
}

function drawMark(
  ctx: CanvasRenderingContext2D,
  kind: MarkKind,
  x: number,
  bbox: uPlot.BBox,
  ratio: number,
): void {
  const strong = kind === 'fault' || kind === 'change';
  ctx.strokeStyle = ctx.fillStyle = colour(`mark-${kind}`);
  ctx.globalAlpha = strong ? 0.75 : 0.4;
  ctx.setLineDash(strong ? [] : [3 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(x + 0.5, bbox.top);
  ctx.lineTo(x + 0.5, bbox.top + bbox.height);
  ctx.stroke();
  // A flag at the top, which makes lines of one pixel easy to point at.
  const size = 4 * ratio;
  ctx.globalAlpha = 1;
  ctx.beginPath();
  ctx.moveTo(x - size, bbox.top - size * 1.25);
  ctx.lineTo(x + size + 1, bbox.top - size * 1.25);
  ctx.lineTo(x + 0.5, bbox.top);
  ctx.fill();
}

/** The marks near a place of a chart, in pixels of the style sheet. */
export function marksNear(u: uPlot, timeline: Timeline, left: number): Mark[] {
  return timeline
    .visibleMarks()
    .filter((mark) => Math.abs(u.valToPos(mark.at_ns / 1e9, 'x') - left) <= 5);
}

export function markLines(marks: Mark[]): HTMLElement {
  const shown = marks.slice(0, 8);
  return h(
    'ul',
    { class: 'mark-lines' },
    shown.map((mark) =>
      h('li', { class: `mark mark-${mark.kind}` }, h('b', null, at(mark.at_ns)), ' ', mark.text),
    ),
    marks.length > shown.length ? h('li', null, `and ${marks.length - shown.length} more`) : null,
  );
}
