// Frame times of the live page with 200 links that all do something: `npm run bench [seconds]`.
import { large } from '../test/support/fixtures.mjs';
import { random } from '../test/support/model.mjs';
import { browser, open } from '../test/support/pages.mjs';
import { alive, properties, sample, serve, status } from '../test/support/server.mjs';

const seconds = Number(process.argv[2] || 10);
const document = alive(large({ links: 200, bins: 750 }), 700);
const [run] = document.runs;
run.series.step_ns = 100_000_000;
run.series.samples_per_bin = 1;
run.elapsed_ns = 70e9;
const dice = random(9);
const server = await serve({
  calls: [],
  document,
  run,
  runs: [
    { id: run.id, name: run.label, elapsed_ns: run.elapsed_ns, folder: run.folder, alive: true },
  ],
  first: [
    ['links', { links: properties(run) }],
    ['status', status(run)],
  ],
  command: () => ({ exit: 0, stdout: '', stderr: '' }),
  exec: [],
});
const on = await browser();
const { tab, errors } = await open(on, server.address);
await tab.getByText('live', { exact: true }).waitFor();
await tab.evaluate(() => {
  window.windtunnelFrameTimes.intervals.length = 0;
  window.windtunnelFrameTimes.work.length = 0;
});
let tenth = 701;
const timer = setInterval(() => {
  server.push('sample', sample(run.lanes.length, tenth * 1e8, dice));
  tenth += 1;
}, 100);
await new Promise((done) => {
  setTimeout(done, seconds * 1000);
});
clearInterval(timer);
const times = await tab.evaluate(() => window.windtunnelFrameTimes);
await on.close();
await server.close();

const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[
    Math.min(values.length - 1, Math.floor(share * values.length))
  ] ?? NaN;
const row = (name, values) =>
  `${name}: median ${quantile(values, 0.5).toFixed(2)} ms, p99 ${quantile(values, 0.99).toFixed(2)} ms, n ${values.length}`;
console.log(`200 links, ${seconds} s, ${tenth - 701} samples`);
console.log(row('frame interval', times.intervals));
console.log(row('work in frames that drew', times.work));
if (errors.length) {
  console.error(errors.join('\n'));
  process.exitCode = 1;
}
