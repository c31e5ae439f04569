/** Finds the document inside the page and decodes it. */
import type { Document } from './types';

export interface Entry {
  mode: 'report' | 'live' | 'edit' | 'empty';
  element: HTMLElement | null;
}

/** What the page was opened for: the element that the program put in says it. */
export function entry(): Entry {
  for (const mode of ['live', 'edit'] as const) {
    const element = document.getElementById(`windtunnel-${mode}`);
    if (element) return { mode, element };
  }
  const element = document.getElementById('windtunnel-document');
  return { mode: element ? 'report' : 'empty', element };
}

/** The token that the program gave to a live page or an editor. */
export function token(element: HTMLElement): string {
  const given = JSON.parse(element.textContent || '{}') as { token?: unknown };
  return typeof given.token === 'string' ? given.token : '';
}

export async function readDocument(element: HTMLElement): Promise<Document> {
  const text = element.textContent || '';
  const encoding = element.dataset.encoding || 'json';
  const json = encoding === 'deflate-base64' ? await inflate(text.trim()) : text;
  const read = JSON.parse(json) as Document;
  if (read.format !== 'windtunnel-report') throw new Error('the page has no report of windtunnel');
  if (read.version !== 1)
    throw new Error(`version ${String(read.version)} of the report is not known to this page`);
  return read;
}

async function inflate(base64: string): Promise<string> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}
