// A live run, against a server that speaks its interface.
import assert from 'node:assert/strict';
import { after, before, beforeEach, afterEach, test } from 'node:test';
import { allDrawn, noSideScroll, picture } from './support/checks.mjs';
import { report } from './support/fixtures.mjs';
import { random } from './support/model.mjs';
import { browser, open, settled } from './support/pages.mjs';
import { alive, properties, sample, serve, status } from './support/server.mjs';

let on;
let state;
let server;
let page;
let tab;
let dice;

before(async () => {
  on = await browser();
});
after(() => on.close());

beforeEach(async () => {
  dice = random(5);
  const document = alive(report(), 100);
  const [run] = document.runs;
  state = {
    calls: [],
    document,
    run,
    runs: [
      { id: run.id, name: 'five', elapsed_ns: run.elapsed_ns, folder: run.folder, alive: true },
    ],
    first: [
      ['links', { links: properties(run) }],
      ['status', status(run)],
    ],
    command: () => ({ exit: 0, stdout: '[  10.100s] link ocean: set\n', stderr: '' }),
    exec: ['State Recv-Q\n', 'ESTAB 0\n', '[exit 0]\n'],
  };
  server = await serve(state);
  page = await open(on, server.address, { permissions: ['clipboard-read', 'clipboard-write'] });
  ({ tab } = page);
  await tab.getByText('live', { exact: true }).waitFor();
});

afterEach(async () => {
  await page.close();
  await server.close();
});

/** Sends samples of some tenths of a second. */
function run(tenths, from = 101) {
  for (let k = 0; k < tenths; k += 1)
    server.push('sample', sample(state.run.lanes.length, (from + k) * 1e8, dice));
}

const commands = () =>
  state.calls.filter((call) => call.path.endsWith('/command')).map((call) => call.body.argv);

test('time lines and map move while the run goes', async () => {
  await allDrawn(tab, 4);
  const before = await picture(tab, 'Throughput');
  run(20);
  await tab.locator('.live-clock', { hasText: '12 s' }).waitFor();
  await settled(tab);
  assert.notEqual(await picture(tab, 'Throughput'), before);
  const levels = await tab
    .locator('.half')
    .evaluateAll((all) => all.map((one) => one.dataset.level));
  assert.ok(
    levels.every((level) => level !== 'idle'),
    levels.join(),
  );
  assert.deepEqual(page.errors, []);
});

test('pause holds the range, the whole run shows all of it', async () => {
  const shown = () => tab.locator('output.range').textContent();
  run(10);
  await tab.locator('.live-clock', { hasText: '11 s' }).waitFor();
  await tab.getByRole('radio', { name: 'Paused' }).check();
  const held = await shown();
  run(10, 111);
  await tab.locator('.live-clock', { hasText: '12 s' }).waitFor();
  assert.equal(await shown(), held);
  await tab.getByRole('radio', { name: 'Whole run' }).check();
  assert.match(await shown(), /^0\.000 s – 12\.000 s/);
});

test('a sample or an event that comes twice counts once', async () => {
  const bytes = 12_500_000;
  const lanes = [[0, bytes, bytes, bytes, 9000, 0, 0, 0, 0, 1000]];
  const mark = {
    at_ns: 10_050_000_000,
    event: 'x',
    kind: 'other',
    text: 'once',
    links: [],
    nodes: [],
  };
  for (const at of [10.1, 10.1, 10.2]) {
    server.push('sample', { at_ns: at * 1e9, window_ns: 1e8, lanes: at === 10.1 ? lanes : [] });
  }
  server.push('event', mark);
  server.push('event', mark);
  await tab.locator('.live-clock', { hasText: '10.2 s' }).waitFor();
  await tab.getByRole('radio', { name: 'Whole run' }).check();
  await settled(tab);
  assert.match(await tab.locator('#timelines .legend').first().innerText(), /max 1 Gbit/);
  assert.equal(await tab.locator('#events tbody tr', { hasText: 'once' }).count(), 1);
});

test('drops have their reasons while the run goes', async () => {
  const of = (tenth, dropped) => {
    const made = sample(state.run.lanes.length, tenth * 1e8, dice);
    for (const lane of made.lanes) lane[5] = 0;
    made.lanes[0][5] = dropped.reduce((sum, [, , packets]) => sum + packets, 0);
    return { ...made, dropped };
  };
  // Charts out of sight are not drawn.
  await tab.getByText('Drops by reason').first().scrollIntoViewIfNeeded();
  const legend = tab.locator('.legend').filter({ hasText: 'partition' });
  assert.equal(await legend.count(), 0);
  server.push('sample', of(101, [[0, 'partition', 7]]));
  server.push('sample', of(102, [[0, 'partition', 2]]));
  server.push('sample', of(103, []));
  await legend.first().waitFor();
  assert.doesNotMatch(await legend.first().innerText(), /any reason/);
});

test('sliders and fields of a link send on release, shown as commands to copy', async () => {
  await tab.locator('.link').first().locator('.hit').click();
  const field = tab.locator('[data-knob="latency"]');
  await field.fill('200ms');
  await field.press('Enter');
  await tab.locator('.command.done').first().waitFor();
  assert.deepEqual(commands()[0], ['set', 'ocean', 'latency=200ms']);
  assert.equal(
    await tab.locator('.command code').first().textContent(),
    'windtunnel set ocean latency=200ms',
  );
  await tab.locator('.copy').first().click();
  await tab.getByText('Copied').waitFor();
  assert.equal(
    await tab.evaluate(() => navigator.clipboard.readText()),
    'windtunnel set ocean latency=200ms',
  );
  await tab.getByRole('radio', { name: 'web-r' }).check();
  const slider = tab.locator('[data-slider="loss"]');
  await slider.focus();
  await slider.press('End');
  await tab.locator('.command', { hasText: 'loss=50%' }).waitFor();
  assert.deepEqual(commands()[1], ['set', 'ocean', 'loss=50%', '--direction', 'up']);
});

test('what a command of another terminal changed is shown, and set back', async () => {
  await tab.locator('.link').first().locator('.hit').click();
  server.push('links', {
    links: properties(state.run, { ocean: { latency: '80ms' }, state: { ocean: 'down' } }),
  });
  await tab.getByText('was 20ms').waitFor();
  assert.equal(await tab.locator('[data-knob="latency"]').inputValue(), '80ms');
  assert.ok(
    await tab
      .locator('.link')
      .first()
      .evaluate((one) => one.classList.contains('down')),
  );
  await tab.getByRole('button', { name: 'As at the beginning' }).click();
  await tab.getByRole('button', { name: 'Heal' }).click();
  await tab.locator('.command.done').nth(1).waitFor();
  assert.deepEqual(commands(), [
    ['set', 'ocean', 'latency=20ms'],
    ['up', 'ocean'],
  ]);
});

test('errors of a command are shown with their hint', async () => {
  state.command = () => ({
    exit: 2,
    stdout: '',
    stderr: 'error: `latency` is not a time: `fast`\nhint: such as 20ms\n',
  });
  await tab.locator('.link').first().locator('.hit').click();
  const field = tab.locator('[data-knob="latency"]');
  await field.fill('fast');
  await field.press('Enter');
  assert.match(await tab.locator('.command.failed pre').innerText(), /hint: such as 20ms/);
});

test('a node: what its programs do, kill and restart, a shell', async () => {
  await tab.locator('.vertex').first().locator('circle').click();
  await tab.getByRole('button', { name: 'Kill' }).click();
  await tab.getByRole('button', { name: 'Restart' }).click();
  await tab.locator('.command.done').nth(1).waitFor();
  assert.deepEqual(commands(), [
    ['do', '{node: web, do: kill}'],
    ['do', '{node: web, do: restart}'],
  ]);
  await tab.getByLabel('Shell command in web').fill("ss -tn | grep '80'");
  await tab.getByLabel('Shell command in web').press('Enter');
  await tab.locator('.screen', { hasText: '[exit 0]' }).waitFor();
  assert.match(
    await tab.locator('.command code').first().textContent(),
    /^windtunnel exec web -- sh -c 'ss -tn \| grep /,
  );
  server.push('status', status(state.run, { web: 'paused' }));
  await tab.locator('.node-programs .state', { hasText: 'paused' }).waitFor();
  assert.equal(await tab.locator('.vertex').first().getAttribute('data-state'), 'paused');
});

test('output and events come in as text', async () => {
  server.push('output', {
    node: 'web',
    program: 0,
    stream: 'stderr',
    text: '<img src=x onerror=alert(1)>\n',
  });
  server.push('event', {
    at_ns: 10_200_000_000,
    event: 'link-state',
    kind: 'fault',
    text: 'link ocean: down',
    links: ['ocean'],
    nodes: [],
  });
  await tab.locator('.output-text', { hasText: '<img' }).waitFor();
  await tab.locator('#events tbody tr', { hasText: 'link ocean: down' }).first().waitFor();
  assert.equal(await tab.locator('img').count(), 0);
});

test('a lost connection is said, and comes back', async () => {
  state.refuse = true;
  server.cut();
  await tab.getByText('connection lost').waitFor();
  state.refuse = false;
  await tab.getByText('live', { exact: true }).waitFor();
  run(5);
  await tab.locator('.live-clock', { hasText: '10.5 s' }).waitFor();
});

test('missed messages load the document again', async () => {
  const documents = () => state.calls.filter((call) => call.path.endsWith('/document')).length;
  const before = documents();
  const again = tab.waitForResponse((response) => response.url().endsWith('/document'));
  server.push('gap', { missed: 12 });
  await again;
  assert.equal(documents(), before + 1);
});

test('the end of the run shows its report', async () => {
  server.push('ended', { document: report() });
  await tab.getByText('the run has ended').waitFor();
  assert.ok((await tab.locator('#verdict').innerText()).includes('NOT FAITHFUL'));
  await allDrawn(tab, 7);
});

test('one wide as a telephone does not scroll sideways', async () => {
  await tab.setViewportSize({ width: 400, height: 800 });
  await tab.locator('.link').first().locator('.hit').click({ force: true });
  await settled(tab);
  await noSideScroll(tab);
});

test('frame times are measured', async () => {
  run(3);
  await tab.locator('.live-clock', { hasText: '10.3 s' }).waitFor();
  const { intervals, work } = await tab.evaluate(() => window.windtunnelFrameTimes);
  assert.ok(intervals.length > 0 && work.length > 0);
});
