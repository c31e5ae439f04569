// Questions that several tests ask a page.
import assert from 'node:assert/strict';

/** How many canvases there are, and those on which nothing but one colour is to be seen. */
export function canvases(tab) {
  return tab.evaluate(() =>
    [...document.querySelectorAll('.stage')].map((stage) => {
      const canvas = stage.querySelector('canvas');
      const title = stage.closest('figure').querySelector('h3').textContent;
      if (!canvas) return { title, colours: 0 };
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let k = 0; k < data.length; k += 4)
        if (data[k + 3] > 40)
          seen.add((data[k] >> 4) * 256 + (data[k + 1] >> 4) * 16 + (data[k + 2] >> 4));
      return { title, colours: seen.size };
    }),
  );
}

/** Every chart has axes and at least one line in a colour of its own. */
export async function allDrawn(tab, atLeast) {
  const found = await canvases(tab);
  assert.ok(found.length >= atLeast, `${found.length} charts`);
  for (const { title, colours } of found) assert.ok(colours >= 3, `${title}: ${colours} colours`);
}

/** Neither errors nor requests but that of the page. */
export function quiet({ errors, requests }) {
  assert.deepEqual(errors, []);
  assert.equal(requests.length, 1, requests.join('\n'));
}

/** The text of the first chart's x axis cannot be read from a canvas: the range that the page shows is. */
export function range(tab) {
  return tab.locator('output.range').first().textContent();
}

export async function noSideScroll(tab) {
  const [content, window] = await tab.evaluate(() => [
    document.documentElement.scrollWidth,
    innerWidth,
  ]);
  assert.ok(content <= window, `${content} > ${window}`);
}

/** A sum over the pixels of a chart: it changes when something else is drawn. */
export function picture(tab, title) {
  return tab.evaluate((wanted) => {
    const figure = [...document.querySelectorAll('figure.chart')].find(
      (one) => one.querySelector('h3').textContent === wanted,
    );
    const canvas = figure.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let sum = 0;
    for (let k = 0; k < data.length; k += 1) sum = (Math.imul(sum, 31) + data[k]) | 0;
    return sum;
  }, title);
}
