// Screenshots against references. `UPDATE=1` writes the references anew: look at them before you commit.
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { comparison, large, report } from './support/fixtures.mjs';
import { browser, filled, open, outputFolder, settled, stored } from './support/pages.mjs';

const references = fileURLToPath(new URL('./references/', import.meta.url));
/** Share of pixels that may differ: another version of the browser smooths edges in another way. */
const allowed = 0.01;
let on;

before(async () => {
  on = await browser();
});
after(() => on.close());

async function compare(name, picture) {
  await mkdir(outputFolder, { recursive: true });
  await writeFile(`${outputFolder}${name}.png`, picture);
  if (process.env.UPDATE) {
    await mkdir(references, { recursive: true });
    await writeFile(`${references}${name}.png`, picture);
    return;
  }
  const seen = PNG.sync.read(picture);
  const wanted = PNG.sync.read(await readFile(`${references}${name}.png`));
  assert.deepEqual([seen.width, seen.height], [wanted.width, wanted.height], `size of ${name}`);
  const difference = new PNG({ width: seen.width, height: seen.height });
  const pixels = pixelmatch(seen.data, wanted.data, difference.data, seen.width, seen.height, {
    threshold: 0.15,
  });
  if (pixels > allowed * seen.width * seen.height)
    await writeFile(`${outputFolder}${name}-difference.png`, PNG.sync.write(difference));
  assert.ok(
    pixels <= allowed * seen.width * seen.height,
    `${pixels} pixels of ${name} differ: see test/output/${name}-difference.png`,
  );
}

const views = [
  {
    name: 'report-light',
    document: report,
    scheme: 'light',
    sections: ['#verdict', '#map', '#timelines'],
  },
  { name: 'tree-dark', document: large, scheme: 'dark', sections: ['#map', '#timelines'] },
  {
    name: 'comparison-light',
    document: comparison,
    scheme: 'light',
    sections: ['#verdict', '#comparison', '#timelines'],
  },
];

for (const { name, document, scheme, sections } of views) {
  test(`${name} looks as it did`, async () => {
    const { tab, close } = await open(
      on,
      await stored(`looks-${name}.html`, await filled(document())),
      { colorScheme: scheme },
    );
    const boxes = await Promise.all(sections.map((section) => tab.locator(section).boundingBox()));
    await settled(tab);
    const picture = await tab.screenshot({
      fullPage: true,
      animations: 'disabled',
      clip: {
        x: 0,
        y: 0,
        width: 1280,
        height: Math.ceil(Math.min(1800, Math.max(...boxes.map((box) => box.y + box.height)))),
      },
    });
    await compare(name, picture);
    await close();
  });
}
