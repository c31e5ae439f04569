// The editor, against a server that speaks its interface.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { noSideScroll } from './support/checks.mjs';
import { report } from './support/fixtures.mjs';
import { browser, open } from './support/pages.mjs';
import { serve } from './support/server.mjs';

const text =
  'nodes: [web, client]\nlinks:\n  - {between: [web, client], name: ocean, latency: 20ms}\n';
let on;
let state;
let server;
let page;
let tab;
let file;

before(async () => {
  on = await browser();
});
after(() => on.close());

beforeEach(async () => {
  file = { path: 'net.yaml', text, version: 1 };
  state = { calls: [], file: answer };
  server = await serve(state);
  page = await open(on, server.address);
  ({ tab } = page);
  await tab.locator('.vertex').first().waitFor();
});

afterEach(async () => {
  await page.close();
  await server.close();
});

/** Checks by one rule: `latency: fast` is a mistake. */
function answer(method, path, body) {
  if (path === '/api/check') {
    const lines = body.text.split('\n');
    const line = lines.findIndex((one) => one.includes('fast'));
    if (line >= 0)
      return [
        200,
        {
          errors: [
            {
              line: line + 1,
              column: lines[line].indexOf('fast') + 1,
              message: '`fast` is not a time',
              hint: 'such as 20ms',
            },
          ],
        },
      ];
    const [run] = report().runs;
    return [
      200,
      {
        errors: [],
        document: {
          format: 'windtunnel-report',
          version: 1,
          mode: 'edit',
          runs: [{ map: run.map, lanes: run.lanes }],
        },
        paths: [{ from: 'web', to: 'client', latency: '20ms', hops: 1 }],
      },
    ];
  }
  if (method === 'GET') return [200, file];
  if (body.version !== file.version) return [409, { text: file.text, version: file.version }];
  file = { ...file, text: body.text, version: file.version + 1 };
  return [200, { version: file.version }];
}

const area = () => tab.getByLabel('Scenario file');
const says = (what) => tab.locator('.file-state', { hasText: what }).waitFor();

test('the map and paths of the file', async () => {
  await says('saved, no mistakes');
  assert.equal(await tab.locator('.link').count(), 3);
  assert.equal(await tab.locator('#paths tbody tr').count(), 1);
  await tab.locator('.link').first().locator('.hit').click();
  assert.equal(
    await tab.evaluate(
      () =>
        getSelection().toString() ||
        document.activeElement.value.slice(
          document.activeElement.selectionStart,
          document.activeElement.selectionEnd,
        ),
    ),
    'ocean',
  );
  assert.deepEqual(page.errors, []);
});

test('mistakes are marked at their place, with a hint, and the map stays', async () => {
  await area().fill(text.replace('20ms', 'fast'));
  await tab.locator('.mistakes li').waitFor();
  assert.match(
    await tab.locator('.mistakes li').innerText(),
    /3:52[^]*`fast` is not a time[^]*hint: such as 20ms/,
  );
  assert.equal(await tab.locator('.editor-under mark').textContent(), 'fast');
  assert.equal(await tab.locator('.editor-numbers .wrong').textContent(), '3');
  assert.ok(await tab.getByText('The map is of the last text without mistakes.').isVisible());
  await tab.getByLabel('Line 3, column 52').click();
  assert.equal(
    await area().evaluate((one) => one.value.slice(one.selectionStart, one.selectionStart + 4)),
    'fast',
  );
  await area().fill(text);
  await says('no mistakes');
  assert.equal(await tab.locator('.editor-under mark').count(), 0);
});

test('a save writes the file with its version', async () => {
  await area().fill(`# a comment\n${text}`);
  await says('changed, not saved');
  await tab.keyboard.press('Control+s');
  await says('saved');
  assert.equal(file.text, `# a comment\n${text}`);
  assert.equal(file.version, 2);
  assert.ok(await tab.getByRole('button', { name: 'Save' }).isDisabled());
});

test('a file that another program writes is read again', async () => {
  file = { ...file, text: `# other\n${text}`, version: 5 };
  server.push('changed', { text: file.text, version: 5 });
  await says('read again');
  assert.equal(await area().inputValue(), file.text);
});

test('a conflict is shown with both choices', async () => {
  await area().fill(`# mine\n${text}`);
  file = { ...file, text: `# theirs\n${text}`, version: 7 };
  await tab.getByRole('button', { name: 'Save' }).click();
  await tab.getByRole('alert').waitFor();
  assert.equal(file.text, `# theirs\n${text}`);
  await tab.getByRole('button', { name: /^Keep this text/ }).click();
  await says('saved');
  assert.equal(file.text, `# mine\n${text}`);
  await area().fill(`# mine again\n${text}`);
  file = { ...file, text: `# theirs again\n${text}`, version: 12 };
  server.push('changed', { text: file.text, version: 12 });
  await tab.getByRole('alert').waitFor();
  await tab.getByRole('button', { name: /^Take the file/ }).click();
  assert.equal(await area().inputValue(), `# theirs again\n${text}`);
});

test('one wide as a telephone does not scroll sideways', async () => {
  await tab.setViewportSize({ width: 400, height: 800 });
  await noSideScroll(tab);
});
