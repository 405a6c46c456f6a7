// What the viewer's checks share: a served directory, a headless Chromium with a profile of its own,
// and checks that print one line each. Nothing waits for a time: everything waits for a condition.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
export const WAIT_MS = 20_000;

export function findChromium() {
  return process.env.DIAL9_CHROMIUM ?? '/usr/bin/chromium';
}

/** Starts `dial9 serve FOLDER` on a port of its own; ends with stop(). */
export async function startServer(program, folder, more = []) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(program, ['serve', folder, '--port', '0', ...more], { stdio });
  let text = '';
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      text += chunk;
      const match = /http:\/\/[^\s]+/.exec(text);
      if (match) resolve(match[0]);
    });
    child.on('exit', (code) => reject(new Error(`serve ended with ${code}: ${text}`)));
  });
  const ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
  return {
    url,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export async function startBrowser() {
  const profile = mkdtempSync(join(tmpdir(), 'dial9-web-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium(),
    headless: true,
    args: FLAGS,
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
  });
  context.setDefaultTimeout(WAIT_MS);
  return {
    context,
    stop: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

export class Checks {
  passed = 0;
  failed = 0;
  skipped = 0;

  async run(name, body) {
    const started = performance.now();
    try {
      await body();
      this.passed += 1;
      console.log(`ok    ${name} (${Math.round(performance.now() - started)} ms)`);
    } catch (error) {
      this.failed += 1;
      console.log(`FAIL  ${name}: ${error.message.split('\n').slice(0, 12).join('\n      ')}`);
    }
  }

  /** What this machine can't show. */
  skip(name, reason) {
    this.skipped += 1;
    console.log(`skip  ${name}: ${reason}`);
  }
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

/** Polls `probe` in the page until it is truthy and returns its value. */
export async function until(page, probe, argument, what) {
  const handle = await page.waitForFunction(probe, argument, { timeout: WAIT_MS }).catch((error) => {
    throw new Error(`never came: ${what}: ${error.message.split('\n')[0]}`);
  });
  return handle.jsonValue();
}

/** A page of its own that collects what went wrong in it. */
export async function openPage(browser, url) {
  const page = await browser.context.newPage();
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') page.problems.push(`console: ${message.text()}`);
  });
  await page.goto(url);
  return page;
}

/** Waits until the viewer is there, has all that its view needs, and has drawn it. */
export async function ready(page) {
  await page.waitForSelector('.rows[aria-busy="false"]');
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

/** The view in the address, or null for the whole trace. The page writes it a moment after a change. */
export function viewOf(url) {
  const state = new URLSearchParams(new URL(url).hash.slice(1));
  const [t0, t1] = [state.get('t0'), state.get('t1')];
  return t0 === null || t1 === null ? null : { start: Number(t0), end: Number(t1) };
}

export const parameter = (url, name) => new URLSearchParams(new URL(url).hash.slice(1)).get(name);

/** Waits until the address says something else than before. */
export async function changedUrl(page, before) {
  await until(page, (old) => location.href !== old, before, 'another address');
  return page.url();
}

/** Counts the pixels of the timeline that have a colour of the theme, by its custom property. */
export function countPixels(page, names) {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector('.rows canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const style = getComputedStyle(document.documentElement);
    const counts = {};
    const byColor = new Map();
    for (const name of wanted) {
      counts[name] = 0;
      byColor.set(Number.parseInt(style.getPropertyValue(`--${name}`).trim().slice(1), 16), name);
    }
    for (let i = 0; i < data.length; i += 4) {
      const name = byColor.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      if (name) counts[name] += 1;
    }
    return counts;
  }, names);
}

export async function axeProblems(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations.map(
    (violation) => `${violation.id}: ${violation.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`,
  );
}

export const here = (name) => fileURLToPath(new URL(name, import.meta.url));
