/** The frame around all modes: head, navigation, theme, printing. */
import { button, fill, h } from './dom/element';
import { goTo, type Section } from './dom/section';

/** Puts sections onto the page, with a navigation between them. */
export function show(
  title: string,
  theme: HTMLElement,
  sections: Section[],
  ...status: HTMLElement[]
): void {
  document.title = `${title} · windtunnel`;
  const main = h(
    'main',
    { id: 'main' },
    sections.map((one) => one.element),
  );
  const links = sections.map((one) =>
    h(
      'a',
      {
        href: `#${one.id}`,
        on: {
          click: (event) => {
            event.preventDefault();
            goTo(one.element);
          },
        },
      },
      one.title.replace(/:.*/, ''),
    ),
  );
  fill(
    document.body,
    button(
      'Skip to content',
      () => {
        goTo(main.firstElementChild as HTMLElement);
      },
      { class: 'skip' },
    ),
    h(
      'header',
      { class: 'top' },
      h('span', { class: 'brand' }, 'windtunnel'),
      h('nav', { 'aria-label': 'Sections' }, links),
      h('span', { class: 'top-right' }, status, theme),
    ),
    main,
    h('div', { 'id': 'announcer', 'class': 'unseen', 'aria-live': 'polite' }),
  );
  follow(sections, links);
}

/** Says in the navigation which section is being read. */
function follow(sections: Section[], links: HTMLElement[]): void {
  const seen = new Set<number>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const index = sections.findIndex((one) => one.element === entry.target);
        if (entry.isIntersecting) seen.add(index);
        else seen.delete(index);
      }
      const first = Math.min(...seen);
      links.forEach((link, index) => {
        if (index === first) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
      });
    },
    { rootMargin: '-15% 0px -60% 0px' },
  );
  for (const one of sections) observer.observe(one.element);
}

/** A page that cannot show what it was asked to. */
export function showFailure(cause: string, theme: HTMLElement): void {
  const element = h(
    'section',
    { class: 'section failure', tabindex: -1 },
    h('h1', null, 'This page has nothing to show'),
    h('p', null, cause),
  );
  show('windtunnel', theme, [{ id: 'failure', title: 'Failure', element }]);
}

/** On paper everything is open. */
export function openForPrint(): void {
  let closed: HTMLDetailsElement[] = [];
  const open = () => {
    closed.push(...[...document.querySelectorAll('details')].filter((one) => !one.open));
    for (const one of closed) one.open = true;
  };
  const close = () => {
    for (const one of closed) one.open = false;
    closed = [];
  };
  addEventListener('beforeprint', open);
  addEventListener('afterprint', close);
  matchMedia('print').addEventListener('change', (event) => {
    if (event.matches) open();
    else close();
  });
}
