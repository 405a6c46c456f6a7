// Samples, call stacks, dumps, where a span's time went, pages of rows, and the choice of a field.
// SPDX-License-Identifier: Apache-2.0
import { axeProblems, expect, openPage, parameter, ready, until } from './harness.mjs';

const RUN = '#run=profile.bin';

/** A point of the timeline: at a moment (in ms of the trace's 100), in the middle of a labelled row. */
async function pointAt(page, label, ms, fromBottom = null) {
  return page.evaluate(
    ([text, at, bottom]) => {
      const canvas = document.querySelector('.rows canvas').getBoundingClientRect();
      const rows = [...document.querySelectorAll('.labels .row')];
      const row = rows.find((element) => element.textContent.includes(text)).getBoundingClientRect();
      const x = canvas.left + ((at + 1) / 102) * canvas.width; // the whole trace has 1 % of margin
      return { x, y: bottom === null ? (row.top + row.bottom) / 2 : row.bottom - bottom };
    },
    [label, ms, fromBottom],
  );
}

export async function checkProfile(checks, { browser, url, screens }) {
  const page = await openPage(browser, url + RUN);
  await ready(page);

  await checks.run('a sample of a worker shows its call stack, and its address opens it again', async () => {
    const at = await pointAt(page, 'worker 0', 12, 4);
    await page.mouse.click(at.x, at.y);
    await page.waitForSelector('#panel-details >> text=price_cart');
    const text = await page.textContent('#panel-details');
    expect(text.includes('serve_request') && text.includes('CPU sample'), text);
    await until(page, () => location.hash.includes('sample='), null, 'the sample in the address');
    await page.screenshot({ path: `${screens}/sample-1280-light.png` });
    const again = await openPage(browser, page.url());
    await again.waitForSelector('#panel-details >> text=price_cart');
    await again.close();
  });

  await checks.run('a thread that is no worker has a row of its own', async () => {
    const at = await pointAt(page, 'logger', 30);
    await page.mouse.click(at.x, at.y);
    await page.waitForSelector('#panel-details >> text=write_log');
  });

  await checks.run("a span's time is split into five parts that add up, with reasons", async () => {
    await page.goto(`${url}${RUN}&span=0&panel=details`);
    await ready(page);
    await page.waitForSelector('.span-parts');
    const parts = await page.$$eval('.parts dt', (rows) =>
      rows.map((row) => [row.textContent, row.nextElementSibling.textContent]));
    const expected = { 'On a CPU': '17 ms', Blocked: '3 ms', Waiting: '20 ms', Ready: '5 ms', Unknown: '35 ms' };
    for (const [name, value] of parts) expect(expected[name] === value, `${name}: ${value}`);
    const text = await page.textContent('.span-parts');
    expect(text.includes("ready time isn't known"), text);
    for (const [theme, width] of [['light', 1280], ['dark', 2560]]) {
      await page.setViewportSize({ width, height: width === 1280 ? 800 : 1400 });
      if (theme === 'dark') await page.click('text=Dark');
      await page.screenshot({ path: `${screens}/span-${width}-${theme}.png` });
      const problems = await axeProblems(page);
      expect(problems.length === 0, `axe, ${theme}: ${problems.join('\n')}`);
    }
    await page.click('text=Light');
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await checks.run("a task's life shows where it waited while suspended", async () => {
    await page.goto(`${url}${RUN}&task=7&panel=task`);
    await ready(page);
    await page.click('.vrow >> text=kv_get');
    await page.waitForSelector('#panel-details >> text=Suspended task');
    await until(page, () => location.hash.includes('dump=0'), null, 'the dump in the address');
  });

  await checks.run('more rows than a page holds are said and can be turned to', async () => {
    await page.goto(`${url}${RUN}`);
    await ready(page);
    await page.waitForSelector('.pager >> text=rows 1 to 1,024 of 1,501');
    await page.click('.pager button[title="rows after these"]');
    await page.waitForSelector('.pager >> text=rows 1,025 to 1,501 of 1,501');
    await until(page, () => location.hash.includes('page=spans'), null, 'the page in the address');
    await page.screenshot({ path: `${screens}/pages-1280-light.png` });
  });

  await checks.run('the field that an event draws can be chosen and stays in the address', async () => {
    await page.goto(`${url}${RUN}`);
    await ready(page);
    await page.selectOption('.labels select', 'total');
    await until(page, () => location.hash.includes('field='), null, 'the field in the address');
    expect(parameter(page.url(), 'field') === '["Order","total"]', page.url());
    await ready(page);
    const again = await openPage(browser, page.url());
    await ready(again);
    expect((await again.inputValue('.labels select')) === 'total', 'the choice');
    await again.close();
    expect(page.problems.length === 0, page.problems.join('\n'));
  });

  await checks.run('a selected park is in the address', async () => {
    const at = await pointAt(page, 'worker 0', 30, 12);
    await page.mouse.click(at.x, at.y);
    await page.waitForSelector('#panel-details >> text=Park');
    await until(page, () => location.hash.includes('park=0%40'), null, 'the park in the address');
    const again = await openPage(browser, page.url());
    await again.waitForSelector('#panel-details >> text=Park');
    await again.close();
  });
  await page.close();
}
