// The viewer in a real browser against the real server. One line a check; exit 1 if any failed.
//
//   node run.mjs DIAL9 MAKE_TRACES OUT_FOLDER [EVENTS]
//
// Screenshots go to OUT_FOLDER/screens; EVENTS is the size of the large trace (5,000,000).
// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkAccess } from './check_access.mjs';
import { checkFlame } from './check_flame.mjs';
import { checkLarge } from './check_large.mjs';
import { checkPages } from './check_pages.mjs';
import { checkProfile } from './check_profile.mjs';
import { checkViewer } from './check_viewer.mjs';
import { Checks, findChromium, startBrowser, startServer } from './harness.mjs';

const [program, makeTraces, out, events = '5000000'] = process.argv.slice(2);
if (!program || !makeTraces || !out) {
  console.error('usage: node run.mjs DIAL9 MAKE_TRACES OUT_FOLDER [EVENTS]');
  process.exit(2);
}
if (!existsSync(findChromium())) {
  console.error(`no Chromium at ${findChromium()}: run tools/bootstrap test, or set DIAL9_CHROMIUM`);
  process.exit(1);
}
const traces = join(out, 'traces');
const screens = join(out, 'screens');
rmSync(screens, { recursive: true, force: true });
mkdirSync(screens, { recursive: true });
execFileSync(makeTraces, [traces, events]);

const checks = new Checks();
const server = await startServer(program, traces);
const browser = await startBrowser();
const test = { browser, url: server.url, screens, events: Number(events) };
try {
  await checkPages(checks, test);
  await checkViewer(checks, test);
  await checkProfile(checks, test);
  await checkFlame(checks, test);
  await checkLarge(checks, test);
  await checkAccess(checks, test);
} finally {
  await browser.stop();
  const code = await server.stop();
  await checks.run('the server ends cleanly when asked to', async () => {
    if (code !== 0) throw new Error(`it ended with ${code}`);
  });
}
console.log(`${checks.passed} passed, ${checks.failed} failed`);
process.exit(checks.failed === 0 ? 0 : 1);
