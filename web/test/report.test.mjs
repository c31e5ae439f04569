// The report of one run, in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { allDrawn, noSideScroll, picture, quiet, range } from './support/checks.mjs';
import { large, report } from './support/fixtures.mjs';
import { browser, filled, open, plain, settled, stored } from './support/pages.mjs';

let on;
let address;
const timeCharts = ['Throughput', 'Queue', 'Drops by reason', 'Lateness, largest'];

before(async () => {
  on = await browser();
  address = await stored('report.html', await filled(report()));
});
after(() => on.close());

test('every chart is drawn, without an error or a request', async () => {
  const page = await open(on, address);
  await allDrawn(page.tab, 7);
  quiet(page);
  await page.close();
});

test('the verdict and its reasons come first', async () => {
  const { tab, close } = await open(on, address);
  const first = tab.locator('main > section').first();
  const text = await first.innerText();
  for (const part of [
    'NOT FAITHFUL',
    'PASSED',
    '1528 of 328799 packets',
    '41 events of the kernel layer',
    'Seed',
    '6.18.44',
    '2 of 3',
    '187 on links, ',
    'in receive queues, 416 at full sockets',
  ]) {
    assert.ok(text.includes(part), part);
  }
  const titles = await tab.locator('main > section > h2').allTextContents();
  assert.deepEqual(titles.slice(1, 4), ['Map', 'Time lines', 'Events']);
  await close();
});

test('plain JSON and ten minutes with a hundred links', async () => {
  const page = await open(on, await stored('large.html', await plain(large())));
  await allDrawn(page.tab, 5);
  assert.equal(await page.tab.locator('.link').count(), 100);
  const text = await page.tab.locator('#timelines').innerText();
  assert.ok(text.includes('Each point sums 8 samples of 100 ms; maxima stay maxima.'), text);
  quiet(page);
  await page.close();
});

test('a link of the map leads to its charts, and back', async () => {
  const { tab, close } = await open(on, address);
  await tab.locator('.link').first().locator('.hit').click();
  await settled(tab);
  assert.deepEqual(await tab.locator('#timelines h3.direction').allTextContents(), [
    'web → r',
    'r → web',
  ]);
  await allDrawn(tab, 11);
  assert.equal(await tab.locator('#scope').inputValue(), '0');
  assert.ok(await tab.locator('.legend', { hasText: 'asked rate' }).first().isVisible());
  await tab.getByRole('button', { name: 'Whole network' }).click();
  assert.equal(await tab.locator('#timelines h3.direction').count(), 0);
  await close();
});

test('a node of the map leads to its programs', async () => {
  const { tab, close } = await open(on, address);
  await tab.locator('.vertex').nth(2).locator('circle').click();
  assert.equal(await tab.evaluate(() => document.activeElement.dataset.node), 'probe');
  await close();
});

test('zoom changes every chart, a double click shows the whole run', async () => {
  const { tab, close } = await open(on, address);
  const before = await Promise.all(timeCharts.map((title) => picture(tab, title)));
  const over = tab.locator('figure.chart .u-over').first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await tab.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.5, box.y + 50, { steps: 4 });
  await tab.mouse.up();
  await tab.mouse.move(5, 5);
  await settled(tab);
  const after = await Promise.all(timeCharts.map((title) => picture(tab, title)));
  timeCharts.forEach((title, k) => assert.notEqual(after[k], before[k], title));
  assert.match(await range(tab), /^7\.\d+ s – 1[45]\.\d+ s/);
  await over.dblclick();
  assert.match(await range(tab), /^0\.000 s – 30\.000 s/);
  await close();
});

test('the cursor is shared: every chart shows values at the same time', async () => {
  const { tab, close } = await open(on, address);
  const over = tab.locator('figure.chart .u-over').first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await tab.mouse.move(box.x + box.width / 2, box.y + 60);
  await settled(tab);
  const times = await tab.locator('#timelines .chart-at').allTextContents();
  assert.match(times[0], /^1[45]\.\d00 s$/);
  assert.deepEqual(new Set(times).size, 1);
  await close();
});

test('events are filtered in charts and list, and shown on hover', async () => {
  const { tab, close } = await open(on, address);
  const rows = tab.locator('#events tbody tr');
  assert.equal(await rows.count(), 8);
  const before = await picture(tab, 'Throughput');
  await tab.locator('input[data-kind="fault"]').uncheck();
  await settled(tab);
  assert.equal(await rows.count(), 6);
  assert.notEqual(await picture(tab, 'Throughput'), before);
  const over = tab.locator('figure.chart .u-over').first();
  const box = await over.boundingBox();
  await tab.mouse.move(box.x + box.width * 0.2, box.y + 60);
  await settled(tab);
  assert.ok((await tab.locator('#tooltip').innerText()).includes('latency 40ms'));
  await close();
});

test('the theme changes, charts are drawn in its colours', async () => {
  const { tab, close } = await open(on, address);
  const before = await picture(tab, 'Throughput');
  const ground = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await tab.locator('.theme-switch').click();
  await settled(tab);
  assert.notEqual(await ground(), light);
  assert.notEqual(await picture(tab, 'Throughput'), before);
  await close();
});

test('the keyboard alone: skip, map, charts, tables', async () => {
  const page = await open(on, address);
  const { tab } = page;
  await tab.keyboard.press('Tab');
  assert.equal(await tab.evaluate(() => document.activeElement.textContent), 'Skip to content');
  await tab.locator('.link').first().focus();
  await tab.keyboard.press('Tab');
  assert.match(
    await tab.evaluate(() => document.activeElement.getAttribute('aria-label')),
    /^link home: client-r .*used/,
  );
  await tab.keyboard.press('Enter');
  await settled(tab);
  assert.equal(await tab.evaluate(() => document.activeElement.id), 'timelines');
  await tab.locator('.stage').first().focus();
  await tab.keyboard.press('+');
  assert.match(await range(tab), /^7\.500 s – 22\.500 s/);
  await tab.keyboard.press('Shift+ArrowRight');
  assert.match(await range(tab), /^11\.250 s/);
  await tab.keyboard.press('ArrowRight');
  assert.match(await tab.locator('#announcer').textContent(), /offered .*delivered/);
  await tab.keyboard.press('0');
  assert.match(await range(tab), /^0\.000 s – 30\.000 s/);
  await tab.locator('#links th .sort').nth(9).focus();
  await tab.keyboard.press('Enter');
  assert.equal(await tab.locator('#links th').nth(9).getAttribute('aria-sort'), 'descending');
  quiet(page);
  await page.close();
});

test('tables filter, requests show their timeline', async () => {
  const { tab, close } = await open(on, address);
  await tab.locator('#flows .filter').fill('40120');
  assert.equal(await tab.locator('#flows tbody tr').count(), 1);
  await tab.locator('.request-name').nth(4).click();
  assert.match(await tab.locator('.request-detail h3').textContent(), /^Timeline of request/);
  assert.ok((await tab.locator('.gantt li').count()) > 5);
  await tab.locator('.request-name').first().click();
  const loss = await tab.locator('.losses li').first().innerText();
  assert.match(loss, /on ocean \(web → r\): queue full at .*sent again after 210 ms \(retrans/);
  await close();
});

test('hostile names and output are text', async () => {
  const hostile = '</script><img src=x onerror="document.title=\'owned\'"><b>';
  for (const form of [filled, plain]) {
    const page = await open(on, await stored('hostile.html', await form(report({ hostile }))));
    assert.ok(
      (await page.tab.locator('.vertex').first().getAttribute('aria-label')).includes('<img'),
    );
    assert.equal(await page.tab.locator('img').count(), 0);
    assert.notEqual(await page.tab.title(), 'owned');
    await page.tab.locator('.link').first().focus();
    quiet(page);
    await page.close();
  }
});

test('a document that is no report, and none at all, are said in words', async () => {
  const wrong = await open(
    on,
    await stored('wrong.html', await plain({ format: 'other', version: 1, runs: [] })),
  );
  assert.match(await wrong.tab.locator('main').innerText(), /no report of windtunnel/);
  await wrong.close();
});

test('a run that was killed has no summary and still a report', async () => {
  const document = report();
  delete document.runs[0].summary;
  for (const name of ['flows', 'requests', 'modulation', 'rtt', 'lateness', 'limits_series'])
    delete document.runs[0][name];
  document.runs[0].incomplete = 'run.json is not there: windtunnel was killed';
  const page = await open(on, await stored('killed.html', await filled(document)));
  const text = await page.tab.locator('main').innerText();
  for (const part of ['INCOMPLETE', 'windtunnel was killed', '--record'])
    assert.ok(text.includes(part), part);
  await allDrawn(page.tab, 4);
  quiet(page);
  await page.close();
});

for (const [width, scale] of [
  [400, 2],
  [1280, 1],
  [3840, 1],
]) {
  test(`${width} px: charts are drawn, the page does not scroll sideways`, async () => {
    const page = await open(on, address, {
      viewport: { width, height: 900 },
      deviceScaleFactor: scale,
    });
    await noSideScroll(page.tab);
    await allDrawn(page.tab, 7);
    await page.tab.locator('.link').first().locator('.hit').click({ force: true });
    await settled(page.tab);
    await noSideScroll(page.tab);
    const [width_, css] = await page.tab.evaluate(() => {
      const canvas = document.querySelector('canvas');
      return [canvas.width, canvas.clientWidth];
    });
    assert.equal(width_, css * scale, 'device pixels');
    quiet(page);
    await page.close();
  });
}

test('on paper: light, everything open, no controls, charts within the page', async () => {
  const page = await open(on, address, { colorScheme: 'dark' });
  const { tab } = page;
  await tab.emulateMedia({ media: 'print' });
  await settled(tab);
  assert.equal(
    await tab.evaluate(() => getComputedStyle(document.body).backgroundColor),
    'rgb(255, 255, 255)',
  );
  assert.equal(await tab.locator('details:not([open])').count(), 0);
  for (const hidden of ['.top', '.controls', '.map-controls', '.filter'])
    assert.ok(await tab.locator(hidden).first().isHidden(), hidden);
  const wide = await tab.evaluate(
    () =>
      [...document.querySelectorAll('canvas')].filter(
        (c) => c.getBoundingClientRect().right > innerWidth + 1,
      ).length,
  );
  assert.equal(wide, 0);
  const paper = await tab.pdf({ format: 'A4' });
  assert.ok(paper.length > 30_000);
  await tab.emulateMedia({ media: 'screen' });
  await settled(tab);
  assert.ok((await tab.locator('details:not([open])').count()) > 0);
  quiet(page);
  await page.close();
});
