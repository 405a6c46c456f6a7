// Millions of events: it opens, zooms and pans, no reply grows with the trace, and no frame is held
// up for long by the page itself. Times are printed, and bounded only where a stall would be seen.
// SPDX-License-Identifier: Apache-2.0
import { expect, openPage, ready, until, viewOf } from './harness.mjs';

const MOST_REPLY_BYTES = 1024 * 1024;
const MOST_TASK_MS = 250;

export async function checkLarge(checks, { browser, url, screens, events }) {
  const page = await openPage(browser, 'about:blank');
  const replies = [];
  page.on('response', async (response) => {
    if (!response.url().includes('/api/')) return;
    const body = await response.body().catch(() => null);
    if (body) replies.push({ url: response.url(), bytes: body.length });
  });

  await checks.run(`a trace of ${events} events opens`, async () => {
    const started = performance.now();
    await page.goto(`${url}#run=large.bin`);
    await ready(page);
    const count = events.toLocaleString('en-US').slice(0, 4);
    await until(page, (text) => document.querySelector('.topbar')?.textContent.includes(text), count, 'its size');
    console.log(`      opened in ${Math.round(performance.now() - started)} ms`);
    await page.screenshot({ path: `${screens}/large-1280-light.png` });
  });

  await checks.run('zooming and panning through it never stalls the page', async () => {
    await page.evaluate(() => {
      window.longest = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
      }).observe({ type: 'longtask' });
    });
    const box = await (await page.$('.rows canvas')).boundingBox();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 200);
    for (let i = 0; i < 30; i += 1) await page.mouse.wheel(0, -120);
    for (let i = 0; i < 30; i += 1) await page.keyboard.press('d');
    for (let i = 0; i < 30; i += 1) await page.mouse.wheel(0, 120);
    await ready(page);
    const longest = await page.evaluate(() => window.longest);
    console.log(`      the longest task of the page took ${Math.round(longest)} ms`);
    expect(longest < MOST_TASK_MS, `a task of ${longest} ms`);
    expect(viewOf(page.url()) === null || viewOf(page.url()).end > 0, page.url());
  });

  await checks.run('no reply is larger than the screen can show', async () => {
    const largest = replies.reduce((most, reply) => (reply.bytes > most.bytes ? reply : most), { bytes: 0 });
    console.log(`      ${replies.length} replies, the largest ${largest.bytes} bytes`);
    expect(replies.length > 10, 'replies were seen');
    expect(largest.bytes < MOST_REPLY_BYTES, `${largest.bytes} bytes: ${largest.url}`);
  });

  await checks.run('deep in the trace single polls are named', async () => {
    await page.goto(`${url}#run=large.bin&t0=100000000&t1=100300000`);
    await ready(page);
    await page.screenshot({ path: `${screens}/deep-1280-light.png` });
    let facts = '';
    for (let lane = 0; lane < 16 && !facts.includes('Ready delay'); lane += 1) {
      await page.keyboard.press('ArrowDown');  // the first lane that isn't parked there
      await page.keyboard.press('Enter');
      await page.waitForSelector('#panel-details .facts');
      facts = await page.textContent('#panel-details');
    }
    expect(facts.includes('Ready delay'), facts);
    expect(page.problems.length === 0, page.problems.join('\n'));
  });
  await page.close();
}
