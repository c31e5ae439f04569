// Colours of both themes can be read: AA for texts, 3 to 1 for lines.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFile } from 'node:fs/promises';
import { report } from './support/fixtures.mjs';
import { browser, filled, open, stored } from './support/pages.mjs';

let on;
let address;

before(async () => {
  on = await browser();
  address = await stored('contrast.html', await filled(report()));
});
after(() => on.close());

const style = await readFile(new URL('../src/theme/tokens.css', import.meta.url), 'utf8');
const names = [...style.matchAll(/^ {2}--([\w-]+): light-dark/gm)].map((found) => found[1]);
const lines = names.filter((name) => /^(series|group|drop|mark|level-[1-5])/.test(name));
const texts = [
  ...['text', 'text-soft', 'accent', 'good', 'bad', 'warn'].flatMap((name) =>
    ['card', 'card-2', 'ground'].map((ground) => [name, ground]),
  ),
  ['good', 'good-ground'],
  ['bad', 'bad-ground'],
  ['warn', 'warn-ground'],
  ['accent', 'accent-ground'],
  ['text', 'bad-ground'],
  ['text', 'warn-ground'],
];

/** Relative luminance, as WCAG defines it. */
function luminance([r, g, b]) {
  const linear = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

for (const colorScheme of ['light', 'dark']) {
  test(`contrast, ${colorScheme}`, async () => {
    const { tab, close } = await open(on, address, { colorScheme });
    const colours = await tab.evaluate((all) => {
      const probe = document.body.appendChild(document.createElement('i'));
      return Object.fromEntries(
        all.map((name) => {
          probe.style.color = `var(--${name})`;
          return [name, getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number)];
        }),
      );
    }, names);
    const low = [];
    for (const [name, ground] of texts) {
      const found = contrast(colours[name], colours[ground]);
      if (found < 4.5) low.push(`${name} on ${ground}: ${found.toFixed(2)}`);
    }
    for (const name of lines) {
      const found = contrast(colours[name], colours.card);
      if (found < 3) low.push(`${name}: ${found.toFixed(2)}`);
    }
    assert.ok(lines.length > 20);
    assert.deepEqual(low, []);
    await close();
  });
}
