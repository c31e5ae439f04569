/** Elements are made here and nowhere else. Text is only ever text: no markup is parsed. */

export type Child = Node | string | number | null | undefined | false | Child[];

export interface Props {
  class?: string;
  on?: Record<string, (event: Event) => void>;
  style?: Record<string, string>;
  [attribute: string]: unknown;
}

/** An HTML element. Names of attributes come from the page's code, never from data. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(element, props);
  append(element, children);
  return element;
}

function apply(element: HTMLElement | SVGElement, props?: Props | null): void {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [type, listener] of Object.entries(value as Record<string, EventListener>)) {
        element.addEventListener(type, listener);
      }
    } else if (name === 'style') {
      // By the object model: attributes of that name are refused by the policy of the page.
      for (const [key, text] of Object.entries(value as Record<string, string>))
        element.style.setProperty(key, text);
    } else {
      element.setAttribute(name, value === true ? '' : `${value as string | number}`);
    }
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what an element shows. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

export function button(label: string, click: () => void, props?: Props): HTMLButtonElement {
  return h('button', { type: 'button', ...props, on: { click, ...(props?.on || {}) } }, label);
}

let serial = 0;

/** An id for elements that refer to one another. */
export function freshId(stem: string): string {
  serial += 1;
  return `${stem}-${serial}`;
}

/** Says something to assistive technology without showing it. */
export function announce(text: string): void {
  const region = document.getElementById('announcer');
  if (region) region.textContent = text;
}
