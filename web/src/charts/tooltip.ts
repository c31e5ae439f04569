/** The one tooltip of the page. */
import { fill, h, type Child } from '../dom/element';

let box: HTMLElement | undefined;

/** Shows it beside a point of the window. */
export function showTooltip(x: number, y: number, ...children: Child[]): void {
  if (!box) {
    box = h('div', { class: 'tooltip', role: 'tooltip', id: 'tooltip' });
    document.body.append(box);
  }
  fill(box, children);
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const left = x + 14 + width > innerWidth ? Math.max(4, x - 14 - width) : x + 14;
  const top = Math.min(Math.max(4, y + 12), Math.max(4, innerHeight - height - 4));
  box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

export function hideTooltip(): void {
  if (box) box.hidden = true;
}

/** Rows of names and values. */
export function tooltipRows(rows: [string, Child][]): HTMLElement {
  return h(
    'dl',
    null,
    rows.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
  );
}
