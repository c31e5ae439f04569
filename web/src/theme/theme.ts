/** Light and dark: the choice, and the colours of the style sheet for what draws on a canvas. */
import { button, fill } from '../dom/element';

export type Choice = 'auto' | 'light' | 'dark';

const cache = new Map<string, string>();
const watchers = new Set<() => void>();
let probe: HTMLElement | undefined;

/** The present value of a custom property of the style sheet, such as `series-1`. */
export function colour(name: string): string {
  let found = cache.get(name);
  if (found === undefined) {
    found = resolve(`var(--${name})`);
    cache.set(name, found);
  }
  return found;
}

/** The same with an opacity from 0 to 1. */
export function faded(name: string, opacity: number): string {
  const key = `${name}/${opacity}`;
  let found = cache.get(key);
  if (found === undefined) {
    const channels = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(colour(name));
    found = channels
      ? `rgba(${channels[1]}, ${channels[2]}, ${channels[3]}, ${opacity})`
      : colour(name);
    cache.set(key, found);
  }
  return found;
}

function resolve(value: string): string {
  if (!probe) {
    probe = document.createElement('i');
    probe.hidden = true;
    document.documentElement.append(probe);
  }
  probe.style.color = value;
  return getComputedStyle(probe).color;
}

/** Calls back when colours have changed. */
export function onTheme(redraw: () => void): void {
  watchers.add(redraw);
}

/** One pixel of the style sheet's text size, which grows on large screens. */
export function rem(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 14;
}

function changed(): void {
  cache.clear();
  for (const redraw of watchers) redraw();
}

export function startTheme(): HTMLElement {
  const root = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let choice = stored();
  const control = button(
    '',
    () => {
      next();
    },
    { class: 'theme-switch' },
  );
  const show = () => {
    if (choice === 'auto') delete root.dataset.theme;
    else root.dataset.theme = choice;
    const label = { auto: 'System', light: 'Light', dark: 'Dark' }[choice];
    fill(control, label);
    control.setAttribute('aria-label', `Theme: ${label}. Change`);
    changed();
  };
  const next = () => {
    // The first press always changes what is seen.
    const order: Choice[] = dark.matches ? ['auto', 'light', 'dark'] : ['auto', 'dark', 'light'];
    choice = order[(order.indexOf(choice) + 1) % 3];
    store(choice);
    show();
  };
  dark.addEventListener('change', changed);
  matchMedia('print').addEventListener('change', changed);
  addEventListener('beforeprint', changed);
  addEventListener('afterprint', changed);
  show();
  return control;
}

/** Storage is refused in some frames; the choice then holds for the page only. */
function stored(): Choice {
  try {
    const found = localStorage.getItem('windtunnel-theme');
    return found === 'light' || found === 'dark' ? found : 'auto';
  } catch {
    return 'auto';
  }
}

function store(choice: Choice): void {
  try {
    localStorage.setItem('windtunnel-theme', choice);
  } catch {
    // See `stored`.
  }
}
