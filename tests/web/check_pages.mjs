// The list of runs, and runs that are unlike others: tiny, truncated, without runtime events, missing.
// SPDX-License-Identifier: Apache-2.0
import { axeProblems, countPixels, expect, openPage, ready, until } from './harness.mjs';

export async function checkPages(checks, { browser, url, screens }) {
  await checks.run('the list shows every run and opens one by a click', async () => {
    const page = await openPage(browser, url);
    await page.waitForSelector('table');
    const names = await page.$$eval('tbody a', (links) => links.map((link) => link.textContent));
    for (const name of ['large.bin', 'service.bin', 'tiny.bin', 'truncated.bin', 'custom.bin']) {
      expect(names.includes(name), `${name} is missing from ${names}`);
    }
    await page.screenshot({ path: `${screens}/runs-1280-light.png` });
    const problems = await axeProblems(page);
    expect(problems.length === 0, `axe: ${problems.join('\n')}`);
    await page.click('text=tiny.bin');
    await ready(page);
    expect(page.problems.length === 0, page.problems.join('\n'));
    await page.close();
  });

  await checks.run('a trace of ten events fills the width and is explained', async () => {
    const page = await openPage(browser, `${url}#run=tiny.bin`);
    await ready(page);
    await until(page, () => document.querySelector('.topbar')?.textContent.includes('10 events'), null, 'its count');
    const pixels = await countPixels(page, ['poll-2', 'poll-1']);
    expect(pixels['poll-2'] + pixels['poll-1'] > 200, `polls are drawn: ${JSON.stringify(pixels)}`);
    await page.screenshot({ path: `${screens}/tiny-1280-light.png` });
    await page.close();
  });

  await checks.run('a truncated trace says so and shows what it held', async () => {
    const page = await openPage(browser, `${url}#run=truncated.bin`);
    await ready(page);
    const text = await page.textContent('.strip');
    expect(text.includes('ended early') && text.includes('truncated.bin'), text);
    const pixels = await countPixels(page, ['poll-0', 'poll-1', 'poll-2', 'poll-3']);
    expect(Object.values(pixels).some((n) => n > 500), JSON.stringify(pixels));
    await page.close();
  });

  await checks.run("the recorder's bill and what a budget left out are told", async () => {
    const page = await openPage(browser, `${url}#run=governed.bin`);
    await ready(page);
    await page.click('#tab-recorder');
    const text = await page.textContent('#panel-recorder');
    for (const part of ['0.9 % of a CPU (estimated)', '0.4 % of a CPU', '160,000, 40,000 a second', '4 bills over 4 s']) {
      expect(text.includes(part), `${part} is missing from ${text}`);
    }
    const rows = await page.$$eval('#panel-recorder td', (cells) => cells.map((cell) => cell.textContent));
    expect(rows.join('|') === 'polls|2,760|one in 12.5', rows.join('|'));
    await page.screenshot({ path: `${screens}/recorder-1280-light.png` });
    const problems = await axeProblems(page);
    expect(problems.length === 0, `axe: ${problems.join('\n')}`);
    await page.goto(`${url}#run=tiny.bin&panel=recorder`);
    await page.waitForSelector('#panel-recorder >> text=holds no bill');
    await page.close();
  });

  await checks.run('a trace with custom events only is visible', async () => {
    const page = await openPage(browser, `${url}#run=custom.bin`);
    await ready(page);
    await page.waitForSelector('.labels >> text=SensorReading');
    const { custom } = await countPixels(page, ['custom']);
    expect(custom > 200, `${custom} marker pixels`);
    const box = await (await page.$('.rows canvas')).boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 22 + 13);
    await page.waitForSelector('#panel-details >> text=celsius');
    await page.screenshot({ path: `${screens}/custom-1280-light.png` });
    await page.close();
  });

  await checks.run('a run that is not there gives a message and a way back', async () => {
    const page = await openPage(browser, `${url}#run=nowhere`);
    await page.waitForSelector('[role=alert]');
    const text = await page.textContent('[role=alert]');
    expect(text.includes("no run 'nowhere'"), text);
    await page.click('text=All runs');
    await page.waitForSelector('table');
    await page.close();
  });
}
