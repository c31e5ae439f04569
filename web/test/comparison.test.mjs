// Several runs over each other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { allDrawn, picture, quiet } from './support/checks.mjs';
import { comparison } from './support/fixtures.mjs';
import { browser, filled, open, settled, stored } from './support/pages.mjs';

let on;
let page;

before(async () => {
  on = await browser();
  page = await open(on, await stored('comparison.html', await filled(comparison())));
});
after(() => on.close());

test('groups, charts and distributions over each other', async () => {
  await allDrawn(page.tab, 6);
  assert.equal(await page.tab.locator('.groups > .panel').count(), 2);
  assert.match(
    await page.tab.locator('#timelines .legend').first().innerText(),
    /drop-tail \(5 runs\).*codel \(5 runs\)/s,
  );
  quiet(page);
});

test('differences: all, of one measure, only confident ones', async () => {
  const rows = page.tab.locator('#comparison tbody tr');
  assert.equal(await rows.count(), 8);
  assert.equal(await page.tab.locator('.difference.confident').count(), 4);
  await page.tab.locator('input[data-filter="confident"]').check();
  assert.equal(await rows.count(), 4);
  await page.tab.locator('input[data-filter="confident"]').uncheck();
  await page.tab.getByLabel('Measure', { exact: true }).selectOption('queue max');
  assert.equal(await rows.count(), 1);
  assert.match(await rows.first().innerText(), /−41 packets \(−78.8 %\)/);
});

test('a link direction is chosen for all charts', async () => {
  const before = await picture(page.tab, 'Delivered');
  await page.tab.locator('#overlay-lane').selectOption('ocean: r-web');
  await settled(page.tab);
  assert.notEqual(await picture(page.tab, 'Delivered'), before);
  quiet(page);
});

test('one run in each group: differences without intervals', async () => {
  const document = comparison();
  document.runs = [document.runs[0], document.runs[5]];
  document.comparison.groups.forEach((group, index) => {
    group.runs = [index];
  });
  for (const measure of document.comparison.measures) {
    for (const one of measure.difference) {
      delete one.low;
      delete one.high;
      one.confident = false;
    }
  }
  const pair = await open(on, await stored('pair.html', await filled(document)));
  assert.equal(await pair.tab.locator('.difference circle').count(), 8);
  assert.equal(await pair.tab.locator('.difference .interval').count(), 0);
  assert.match(await pair.tab.locator('#comparison').innerText(), /at least two runs/);
  quiet(pair);
  await pair.close();
});
