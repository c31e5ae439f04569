// Pages with a document in them, as the program writes them, and a browser that opens them.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';
import { chromium } from 'playwright-core';

export const pageFile = fileURLToPath(
  new URL('../../../crates/report/page/page.html', import.meta.url),
);
export const outputFolder = fileURLToPath(new URL('../output/', import.meta.url));
const placeholder = '<!--windtunnel-document-->';

/** The page with a document, as `windtunnel report` makes it. */
export async function filled(document) {
  const packed = deflateSync(JSON.stringify(document)).toString('base64');
  return withElement(
    `<script type="application/octet-stream" id="windtunnel-document" data-encoding="deflate-base64">${packed}</script>`,
  );
}

/** The page with plain JSON. */
export async function plain(document) {
  const json = JSON.stringify(document).replaceAll('<', '\\u003c');
  return withElement(
    `<script type="application/json" id="windtunnel-document" data-encoding="json">${json}</script>`,
  );
}

export async function withElement(element) {
  return (await readFile(pageFile, 'utf8')).replace(placeholder, () => element);
}

/** Writes a page and gives its address. */
export async function stored(name, html) {
  await mkdir(outputFolder, { recursive: true });
  await writeFile(`${outputFolder}${name}`, html);
  return `file://${outputFolder}${name}`;
}

export function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--font-render-hinting=none',
      '--disable-lcd-text',
      '--force-color-profile=srgb',
    ],
  });
}

/** A tab that collects what must not happen: errors, and requests other than the page itself. */
export async function open(on, address, options = {}) {
  const context = await on.newContext({
    viewport: { width: 1280, height: 900 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    ...options,
  });
  const tab = await context.newPage();
  const errors = [];
  const requests = [];
  tab.on('console', (message) => {
    // The tests themselves read pixels back, which is advised against.
    if (
      ['error', 'warning'].includes(message.type()) &&
      !message.text().startsWith('Canvas2D: Multiple readback')
    )
      errors.push(message.text());
  });
  tab.on('pageerror', (error) => errors.push(String(error)));
  tab.on('request', (request) => {
    if (!request.url().startsWith('data:')) requests.push(request.url());
  });
  await tab.goto(address);
  await tab.waitForFunction(() => document.documentElement.dataset.ready);
  await settled(tab);
  return { tab, errors, requests, close: () => context.close() };
}

/** Waits until what was scheduled for the next frames is drawn. */
export async function settled(tab) {
  await tab.evaluate(
    () =>
      new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));
      }),
  );
}
