// The viewer on an ordinary trace: zoom, pan, click, findings, tasks, keys, links, themes, axe.
// SPDX-License-Identifier: Apache-2.0
import {
  axeProblems, changedUrl, countPixels, expect, openPage, parameter, ready, until, viewOf,
} from './harness.mjs';

const RUN = '#run=service.bin';

export async function checkViewer(checks, test) {
  const { browser, url, screens } = test;
  const page = await openPage(browser, url + RUN);
  await ready(page);
  await page.waitForSelector('.finding');
  const box = await (await page.$('.rows canvas')).boundingBox();
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };

  await checks.run('polls, parks, kernel waits, queues and loss are drawn', async () => {
    const pixels = await countPixels(page, ['poll-1', 'park', 'wait', 'queue']);
    for (const [name, count] of Object.entries(pixels)) expect(count > 50, `${name}: ${count}`);
    const text = await page.textContent('.strip.loss');
    expect(text.includes('1,234 events were lost'), text);
  });

  await checks.run('the axis shows wall time in UTC', async () => {
    const text = await page.textContent('.topbar');
    expect(text.includes('2026-06-22 13:50:02'), text);
    expect((await page.textContent('.head')).includes('UTC'), 'UTC is stated');
  });

  await checks.run('the wheel zooms around the pointer and a drag moves', async () => {
    await page.mouse.move(box.x + box.width / 4, middle.y);
    const before = page.url();
    for (let i = 0; i < 8; i += 1) await page.mouse.wheel(0, -200);
    const zoomed = viewOf(await changedUrl(page, before));
    expect(zoomed.end - zoomed.start < 2e8, `zoomed in: ${JSON.stringify(zoomed)}`);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 4 + 200, middle.y, { steps: 5 });
    await page.mouse.up();
    const moved = viewOf(await changedUrl(page, page.url()));
    const share = (zoomed.start - moved.start) / (zoomed.end - zoomed.start);
    expect(Math.abs(share - 200 / box.width) < 0.02, `moved by ${share} of the width`);
  });

  await checks.run('keys zoom, move, fit and go back', async () => {
    await page.keyboard.press('0');
    await until(page, () => !location.hash.includes('t0'), null, 'the whole trace');
    await page.keyboard.press('+');
    await until(page, () => location.hash.includes('t0'), null, 'a zoom');
    const zoomed = viewOf(page.url());
    await page.keyboard.press('d');
    const moved = viewOf(await changedUrl(page, page.url()));
    expect(moved.start > zoomed.start, 'd moves to the right');
    await page.keyboard.press('ArrowLeft');
    expect(viewOf(await changedUrl(page, page.url())).start < moved.start, 'the arrow moves back');
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open] >> text=next / previous finding');
    await page.keyboard.press('Escape');
    await until(page, () => !document.querySelector('dialog[open]'), null, 'the help to close');
  });

  await checks.run('a finding jumps to its place and selects the right task', async () => {
    const list = await page.evaluate(async () => (await fetch('api/v1/runs/service.bin/findings')).json());
    const index = list.findings.findIndex((entry) => entry.poll !== null && entry.task !== null);
    expect(index >= 0, 'some finding has a poll and a task');
    const finding = list.findings[index];
    await page.click('#tab-findings');
    await page.click(`.finding-entry:nth-child(${index + 1}) .finding`);
    await until(page, (task) => location.hash.includes(`task=${task}`), finding.task, 'the task in the address');
    const view = viewOf(page.url());
    expect(view.start < finding.at_ns && view.end > finding.at_ns, 'the moment is in sight');
    await page.waitForSelector(`#tab-task >> text=Task ${finding.task}`);
    await page.click('#tab-details');
    await page.waitForSelector(`#panel-details >> text=task ${finding.task}`);
    await ready(page);
    await page.screenshot({ path: `${screens}/finding-1280-light.png` });
  });

  await checks.run("a task's whole life is listed and goes to its ends", async () => {
    await page.click('#tab-task');
    await page.waitForSelector('.vrow >> text=spawn');
    const task = parameter(page.url(), 'task');
    const life = await page.evaluate(
      async (id) => (await fetch(`api/v1/runs/service.bin/tasks/${id}?limit=1`)).json(), task);
    await page.click('#panel-task >> text=Last');
    const rows = await page.$$eval('.vrow', (elements) => elements.length);
    expect(rows < 120, `only rows in sight exist: ${rows} of ${life.rows_total}`);
    const before = page.url();
    await page.keyboard.press(']');
    const view = viewOf(await changedUrl(page, before));
    expect(view.start <= life.last_ns && view.end >= life.last_ns, 'its last moment is in sight');
  });

  await checks.run('a link restores the view, the task, the poll and the panel', async () => {
    await page.click('#tab-details');
    await until(page, () => location.hash.includes('panel=details'), null, 'the panel');
    const link = page.url();
    await page.mouse.move(5, 5);  // the pointer's line would differ
    await ready(page);
    const other = await openPage(browser, link);
    await ready(other);
    await other.waitForSelector('#panel-details .facts');
    await until(other, (href) => location.href === href, link, 'the same address again');
    const [a, b] = [await countPixels(page, ['poll-5', 'poll-4', 'poll-dim']),
      await countPixels(other, ['poll-5', 'poll-4', 'poll-dim'])];
    expect(a['poll-dim'] > 0 && a['poll-dim'] === b['poll-dim'], `${JSON.stringify(a)} ${JSON.stringify(b)}`);
    await other.close();
  });

  await checks.run('a click selects the poll under the pointer, and the keyboard goes on from it', async () => {
    await page.focus('.rows');
    for (let i = 0; i < 3; i += 1) await page.keyboard.press('Escape');
    await page.keyboard.press('0');
    await until(page, () => !/poll=|task=|t0=/.test(location.hash), null, 'nothing selected');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await until(page, () => location.hash.includes('poll='), null, 'a selected poll');
    await page.waitForSelector('#panel-details >> text=Ready delay');
    const first = Number(parameter(page.url(), 'poll'));
    await page.keyboard.press('.');
    await until(page, (index) => location.hash.includes(`poll=${index}`), first + 1, 'the next poll');
    await page.keyboard.press('t');
    await until(page, () => location.hash.includes('task='), null, 'its task');
  });

  await checks.run('/ finds a task and goes to a time', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('42');
    await page.waitForSelector('.hits >> text=task 42');
    await page.keyboard.press('Enter');
    await until(page, () => location.hash.includes('task=42'), null, 'the task');
    await page.keyboard.press('/');
    await page.keyboard.type('13:50:02.020');
    await page.waitForSelector('.hits >> text=time');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
  });

  await checks.run('j and k walk through the findings', async () => {
    const total = await page.$$eval('.finding', (entries) => entries.length);
    expect(total > 1, `${total} findings`);
    const at = Number(parameter(page.url(), 'finding') ?? -1);
    const is = (index) => until(page, (n) => location.hash.includes(`finding=${n}`), index, `finding ${index}`);
    await page.keyboard.press('j');
    await is((at + 1) % total);
    await page.keyboard.press('k');
    await is((at + total) % total);
  });

  await checks.run('the brush of the minimap chooses the view', async () => {
    await page.keyboard.press('0');
    await until(page, () => !location.hash.includes('t0'), null, 'the whole trace');
    const mini = await (await page.$('.minimap')).boundingBox();
    await page.mouse.move(mini.x + mini.width * 0.5, mini.y + 20);
    await page.mouse.down();
    await page.mouse.move(mini.x + mini.width * 0.6, mini.y + 20, { steps: 4 });
    await page.mouse.up();
    const { duration_ns: length } = await page.evaluate(
      async () => (await fetch('api/v1/runs/service.bin/summary')).json());
    await until(page, (whole) => {
      const state = new URLSearchParams(location.hash.slice(1));
      const share = (Number(state.get('t1')) - Number(state.get('t0'))) / whole;
      return Math.abs(share - 0.1) < 0.01;
    }, length * 1.02, 'a tenth of the trace');
  });

  await checks.run('Shift and drag measures a range', async () => {
    await page.keyboard.down('Shift');
    await page.mouse.move(middle.x, middle.y);
    await page.mouse.down();
    await page.mouse.move(middle.x + 100, middle.y, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await until(page, () => location.hash.includes('range='), null, 'a range');
    await page.waitForSelector('#panel-details >> text=Range of');
  });

  await checks.run('axe finds nothing in either theme', async () => {
    for (const _ of ['light', 'dark']) {
      for (const tab of ['findings', 'task', 'details']) {
        await page.click(`#tab-${tab}`);
        const problems = await axeProblems(page);
        expect(problems.length === 0, problems.join('\n'));
      }
      await page.click('[aria-label^="switch to"]');
    }
  });

  await checks.run('nothing went wrong in the page', async () => {
    expect(page.problems.length === 0, page.problems.join('\n'));
  });
  await screenshots(checks, test);
  await page.close();
}

async function screenshots(checks, { browser, url, screens }) {
  await checks.run('screenshots at 1280 and 2560 px, light and dark', async () => {
    for (const [width, height] of [[1280, 800], [2560, 1300]]) {
      for (const theme of ['light', 'dark']) {
        const page = await openPage(browser, url + RUN);
        await page.setViewportSize({ width, height });
        await page.evaluate((name) => localStorage.setItem('dial9.theme', name), theme);
        await page.reload();
        await ready(page);
        await page.waitForSelector('.finding');
        await page.screenshot({ path: `${screens}/whole-${width}-${theme}.png` });
        const pixels = await countPixels(page, ['poll-1']);
        expect(pixels['poll-1'] > 500, `${width} ${theme}: ${JSON.stringify(pixels)}`);
        await page.click('.finding');
        await ready(page);
        await page.screenshot({ path: `${screens}/finding-${width}-${theme}.png` });
        await page.evaluate(() => localStorage.removeItem('dial9.theme'));
        await page.close();
      }
    }
  });
}
