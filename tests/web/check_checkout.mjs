// A recording of the real checkout service, made here and now: from a slow request, and from a slow
// poll, one click to the stacks of exactly that one. Nothing here depends on how fast the machine
// is: recordings are made until one request was seen both on and off the CPU.
// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { axeProblems, expect, openPage, ready, startServer } from './harness.mjs';
import { recordCheckout } from './record_checkout.mjs';

const MOST_RECORDINGS = 5;
// Every 16th request computes for 20 ms, and blocks in a read of a pipe.
const WAIT = '[blocked: pipe]';
const NO_CACHE = '--no-symbol-cache';
const CLOCK_SLACK_NS = 1e5; // the samplers read the kernel's clock, spans the calibrated one

async function api(url, path, method = 'GET') {
  const response = await fetch(`${url}api/v1/${path}`, { method });
  const reply = await response.json();
  expect(response.ok, `${path}: ${JSON.stringify(reply)}`);
  return reply;
}

async function openRun(url) {
  const { run } = (await api(url, 'runs')).runs[0];
  let status = await api(url, `runs/${run}/open`, 'POST');
  while (status.state === 'loading') status = await api(url, `runs/${run}`);
  expect(status.state === 'ready', JSON.stringify(status));
  return run;
}

const rootNames = ({ nodes, functions }) =>
  nodes.filter((node) => node.parent === 0).map((node) => functions[node.function].name);

/** The request with most time of those that computed and waited for the pipe; null: none was seen. */
async function slowRequest(url, run) {
  let best = null;
  const { hits } = await api(url, `runs/${run}/search?q=request&limit=500`);
  for (const { what, index } of hits) {
    if (what !== 'span') continue;
    const tree = await api(url, `runs/${run}/flame?of=time&span=${index}`);
    const names = rootNames(tree);
    if (!names.includes('[on CPU]') || !names.includes(WAIT)) continue;
    if (!best || tree.total > best.tree.total) best = { index, tree };
  }
  return best;
}

/** The poll in which one of these samples was taken. */
async function pollOf(url, run, moments) {
  for (const { of, index } of moments) {
    if (of !== 'sample') continue;
    const sample = await api(url, `runs/${run}/samples/${index}`);
    const there = await api(url, `runs/${run}/near?lane=${sample.lane}&at=${sample.at_ns}`);
    if (there.what === 'poll') return there;
  }
  throw new Error('none of the samples lies in a poll');
}

/** Why this machine can't tell: what the recorder says; null: it can. */
async function whyNot(url, run) {
  const { metadata } = await api(url, `runs/${run}/summary`);
  const keys = ['cpu.profile.start_error', 'off_cpu.start_error', 'off_cpu.notice'];
  return keys.map((key) => metadata[key]).find((text) => text) ?? null;
}

/** A server of a recording with such a request, or why there is none. */
async function served(program, programs, out) {
  for (let count = 1; ; count += 1) {
    const trace = await recordCheckout(programs, join(out, 'checkout'));
    const server = await startServer(program, trace, [NO_CACHE]);
    const run = await openRun(server.url);
    const request = await slowRequest(server.url, run);
    if (request) return { server, trace, run, request };
    const why = await whyNot(server.url, run);
    await server.stop();
    if (why) return { why };
    expect(count < MOST_RECORDINGS, `no request of ${count} recordings was seen on and off the CPU`);
  }
}

/** The tree's total as the command line tells it. */
const total = (program, args) => {
  const all = [...args, '--json', NO_CACHE];
  const tree = JSON.parse(execFileSync(program, all, { maxBuffer: 1 << 28 }));
  return (tree.flame ?? tree).total;
};

export async function checkCheckout(checks, { browser, program, programs, out, screens }) {
  let made = null;
  await checks.run('the checkout service is recorded until a request was seen on and off the CPU', async () => {
    made = await served(program, programs, out);
  });
  if (!made) return;
  if (made.why) return checks.skip('one click in a recording of the checkout service', made.why);
  const { server, trace, run, request } = made;
  const { url } = server;
  const at = `${url}#run=${encodeURIComponent(run)}`;
  const details = await api(url, `runs/${run}/spans/${request.index}`);
  const query = `runs/${run}/flame/moments?of=time&span=${request.index}&node=0`;
  const { moments } = await api(url, query);

  await checks.run('one click from a slow request of the service shows its stacks on and off the CPU', async () => {
    const page = await openPage(browser, `${at}&span=${request.index}&panel=details`);
    await page.click('text=Flame graph of it');
    await page.waitForSelector('.flame-notes >> text=/Time on and off the CPU: .* in \\d+ stacks?/');
    for (const part of ['on CPU', 'pipe']) await page.waitForSelector(`.flame-key >> text=${part}`);
    await page.fill('input[aria-label="find a function"]', 'at_request');
    await page.waitForSelector('.flame-controls >> text=/[\\d.]+ % in \\d+ functions?/');
    expect(!/^0 %/.test(await page.textContent('.flame-controls [role=status]')), 'the fault is on the stacks');
    await page.fill('input[aria-label="find a function"]', '');
    expect(page.problems.length === 0, page.problems.join('\n'));
    await page.close();
  });

  await checks.run('they are of exactly that request, as the command line tells it too', async () => {
    const end = details.at_ns + details.dur_ns;
    expect(moments.length > 0, 'it has moments');
    for (const moment of moments) {
      const isInside = moment.at_ns >= details.at_ns - CLOCK_SLACK_NS && moment.at_ns <= end + CLOCK_SLACK_NS;
      expect(isInside, `${moment.at_ns} is outside of [${details.at_ns}, ${end}]`);
    }
    const id = details.facts.find((fact) => fact.name === 'Id').value;
    const of = ['--span', id, trace];
    const sum = total(program, ['flame', ...of]) + total(program, ['offcpu', ...of]);
    expect(sum === request.tree.total, `${sum} by the command line, ${request.tree.total} on the page`);
  });

  await checks.run('one click from the poll that computed shows its stacks', async () => {
    const poll = await pollOf(url, run, moments);
    const page = await openPage(browser, `${at}&poll=${poll.index}&panel=details`);
    await page.click('text=Flame graph of it');
    await page.waitForSelector('.flame-notes >> text=/Time on and off the CPU: .* in [1-9]\\d* stacks?/');
    await page.waitForSelector('.flame-key >> text=on CPU');
    expect(page.problems.length === 0, page.problems.join('\n'));
    await page.close();
  });

  await checks.run('the request of the service reads well in light and dark, small and large', async () => {
    for (const theme of ['light', 'dark']) {
      for (const width of [1280, 2560]) {
        const page = await openPage(browser, url);
        await page.setViewportSize({ width, height: width === 1280 ? 800 : 1400 });
        await page.evaluate((name) => localStorage.setItem('dial9.theme', name), theme);
        await page.goto('about:blank');
        await page.goto(`${at}&span=${request.index}&panel=details`);
        await ready(page);
        await page.click('text=Zoom to it');
        await page.click('text=Flame graph of it');
        await page.waitForSelector('.flame-key >> text=on CPU');
        await ready(page);
        await page.screenshot({ path: `${screens}/checkout-request-${width}-${theme}.png` });
        const problems = await axeProblems(page);
        expect(problems.length === 0, `axe, ${theme}: ${problems.join('\n')}`);
        await page.evaluate(() => localStorage.removeItem('dial9.theme'));
        await page.close();
      }
    }
  });
  await server.stop();
}
