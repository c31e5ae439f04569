/** Sections of the page, with a heading that the navigation leads to. */
import { freshId, h, type Child } from './element';

export interface Section {
  id: string;
  title: string;
  element: HTMLElement;
}

export function section(id: string, title: string, ...children: Child[]): Section {
  const element = h(
    'section',
    { id, 'class': 'section', 'aria-labelledby': `${id}-title`, 'tabindex': -1 },
    h('h2', { id: `${id}-title` }, title),
    children,
  );
  return { id, title, element };
}

/** A line that says why something is not there and how to get it. */
export function absent(...children: Child[]): HTMLElement {
  return h('p', { class: 'absent' }, children);
}

/** A list of terms and values, left out where there is none. */
export function facts(rows: [string, Child][]): HTMLElement {
  const shown = rows.filter(
    ([, value]) => value !== undefined && value !== null && value !== '' && value !== false,
  );
  return h(
    'dl',
    { class: 'facts' },
    shown.map(([term, value]) => h('div', null, h('dt', null, term), h('dd', null, value))),
  );
}

/** Brings an element into view and moves the focus to it. */
export function goTo(element: HTMLElement): void {
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  element.scrollIntoView({ behavior: calm ? 'auto' : 'smooth', block: 'start' });
  element.focus({ preventScroll: true });
}

export interface Choice<T extends string> {
  value: T;
  label: string;
}

/** One of several, as a row of buttons (a radio group). */
export function choices<T extends string>(
  label: string,
  options: Choice<T>[],
  chosen: T,
  change: (value: T) => void,
): HTMLElement {
  const name = freshId('choice');
  return h(
    'div',
    { 'class': 'choices', 'role': 'radiogroup', 'aria-label': label },
    options.map((option) =>
      h(
        'label',
        { class: 'choice' },
        h('input', {
          type: 'radio',
          name,
          value: option.value,
          checked: option.value === chosen,
          on: {
            change: () => {
              change(option.value);
            },
          },
        }),
        h('span', null, option.label),
      ),
    ),
  );
}
