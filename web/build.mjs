// Builds the page: one HTML file with script, style and the licences of what is bundled.
// `--verify` compares the committed page with what the sources give, and changes nothing.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('.', import.meta.url));
const target = fileURLToPath(new URL('../crates/report/page/page.html', import.meta.url));
const placeholder = '<!--windtunnel-document-->';
const largest = 250_000;
const bundled = ['uplot', 'd3-force', 'd3-dispatch', 'd3-quadtree', 'd3-timer'];

export async function page() {
  const options = {
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  };
  const script = await text(
    build({ ...options, entryPoints: ['src/main.ts'], format: 'iife', target: 'es2022' }),
  );
  const style = await text(
    build({ ...options, entryPoints: ['src/theme/style.css'], target: 'chrome123' }),
  );
  if (/<\/script/i.test(script) || /<\/style/i.test(style))
    throw new Error('the bundle would end its own element');
  const parts = { policy: policy(script, style), style, script, licences: await licences() };
  const template = await readFile(`${root}src/page.html`, 'utf8');
  const made = template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
  if (made.split(placeholder).length !== 2)
    throw new Error(`${placeholder} has to be in the page once`);
  if (made.length > largest)
    throw new Error(`the page has ${made.length} bytes, more than ${largest}`);
  return made;
}

async function text(built) {
  return (await built).outputFiles[0].text.trim();
}

/** Only this script and this style may run; nothing is loaded but from the server of a live page. */
function policy(script, style) {
  const hash = (source) => `'sha256-${createHash('sha256').update(source).digest('base64')}'`;
  return [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

async function licences() {
  const texts = await Promise.all(
    bundled.map(async (name) => {
      const { version } = JSON.parse(
        await readFile(`${root}node_modules/${name}/package.json`, 'utf8'),
      );
      return `${name} ${version}\n${await readFile(`${root}node_modules/${name}/LICENSE`, 'utf8')}`;
    }),
  );
  return `This page contains:\n\n${texts.join('\n\n').replace(/-->/g, '')}`.trim();
}

const made = await page();
if (process.argv.includes('--verify')) {
  const committed = await readFile(target, 'utf8').catch(() => '');
  if (committed !== made) {
    console.error(
      'error: crates/report/page/page.html is not what web/ gives\nhint: run `npm ci && npm run build` in web/ and commit the page',
    );
    process.exit(1);
  }
} else {
  await writeFile(target, made);
}
console.log(`page.html: ${made.length} bytes`);
