// The viewer in a real browser against the real server. One line a check; exit 1 if any failed.
//
//   node run.mjs DIAL9 MAKE_TRACES OUT_FOLDER [EVENTS [PROGRAMS]]
//
// Screenshots go to OUT_FOLDER/screens; EVENTS is the size of the large trace (5,000,000); PROGRAMS
// holds those of examples/checkout, which are recorded then. DIAL9_WEB_CHECKS=name,... runs some of
// the files check_NAME.mjs alone.
// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkAccess } from './check_access.mjs';
import { checkBase } from './check_base.mjs';
import { checkCheckout } from './check_checkout.mjs';
import { checkFlame } from './check_flame.mjs';
import { checkKeyboard } from './check_keyboard.mjs';
import { checkLarge } from './check_large.mjs';
import { checkPages } from './check_pages.mjs';
import { checkProfile } from './check_profile.mjs';
import { checkViewer } from './check_viewer.mjs';
import { Checks, findChromium, startBrowser, startServer } from './harness.mjs';

const [program, makeTraces, out, events = '5000000', programs] = process.argv.slice(2);
if (!program || !makeTraces || !out) {
  console.error('usage: node run.mjs DIAL9 MAKE_TRACES OUT_FOLDER [EVENTS [PROGRAMS]]');
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
const server = await startServer(program, traces, ['--base', join(traces, 'base', 'before.bin')]);
const browser = await startBrowser();
const test = { browser, url: server.url, screens, events: Number(events), program, programs, out };
const all = {
  pages: checkPages,
  viewer: checkViewer,
  keyboard: checkKeyboard,
  profile: checkProfile,
  flame: checkFlame,
  base: checkBase,
  checkout: checkCheckout,
  large: checkLarge,
  access: checkAccess,
};
const wanted = process.env.DIAL9_WEB_CHECKS?.split(',') ?? Object.keys(all);
try {
  for (const [name, check] of Object.entries(all)) {
    if (!wanted.includes(name)) continue;
    if (name === 'checkout' && !programs) checks.skip(name, 'its programs are not given');
    else await check(checks, test);
  }
} finally {
  await browser.stop();
  const code = await server.stop();
  await checks.run('the server ends cleanly when asked to', async () => {
    if (code !== 0) throw new Error(`it ended with ${code}`);
  });
}
console.log(`${checks.passed} passed, ${checks.failed} failed, ${checks.skipped} skipped`);
process.exit(checks.failed === 0 ? 0 : 1);
