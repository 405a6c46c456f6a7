// Flame graphs of two traces compared: the base that the server was given, or any other run of its.
// SPDX-License-Identifier: Apache-2.0
import { axeProblems, expect, openPage, ready, until } from './harness.mjs';

const BASE = 'select[aria-label="compare with"]';
const NOTES = '.flame-notes >> text=';

async function openFlame(browser, url, flame) {
  const page = await openPage(browser, `${url}#run=flame.bin&flame=${encodeURIComponent(flame)}`);
  await page.waitForSelector('.flame[aria-busy="false"]');
  return page;
}

async function endClean(page) {
  expect(page.problems.length === 0, page.problems.join('\n'));
  await page.close();
}

export async function checkBase(checks, { browser, url, screens }) {
  await checks.run('the base trace is offered, and compared each side by its own sum', async () => {
    const page = await openFlame(browser, url, 'scope=all');
    await page.waitForSelector(`${BASE} option >> text=base trace: before.bin`, { state: 'attached' });
    await page.selectOption(BASE, { label: 'base trace: before.bin' });
    await page.waitForSelector(`${NOTES}/40 ms in 40 samples before → 50 ms in 50 samples now/`);
    await page.waitForSelector(`${NOTES}now: the whole trace; before: the whole of before.bin`);
    await page.waitForSelector(`${NOTES}before is of another build of shop`);
    await page.fill('input[aria-label="find a function"]', 'write_log');
    await page.waitForSelector('.flame-controls >> text=/10 ms, 25 % → 30 ms, 60 % .*35 points/');
    await page.fill('input[aria-label="find a function"]', '');
    await until(page, () => decodeURIComponent(decodeURIComponent(location.hash)).includes('base_run=base:before.bin'),
      null, 'the base in the address');
    const again = await openPage(browser, page.url());
    await again.waitForSelector(`${NOTES}/40 samples before → 50 ms in 50 samples now/`);
    expect((await again.inputValue(BASE)) === 'run:base:before.bin', await again.inputValue(BASE));
    await endClean(again);
    await page.selectOption('select[aria-label="view"]', 'table');
    await page.waitForSelector('.flame-table >> text=Change of self');
    await page.selectOption(BASE, 'none');
    await page.waitForSelector(`${NOTES}/CPU time: 50 ms in 50 samples/`);
    await endClean(page);
  });

  await checks.run('a task of this trace is looked for in this one alone, and that is said', async () => {
    const page = await openFlame(browser, url, 'scope=all&task=5&base=run&base_run=base:before.bin');
    await page.waitForSelector(`${NOTES}/40 ms in 40 samples before → 20 ms in 20 samples now/`);
    await page.waitForSelector(`${NOTES}before isn't narrowed to the task`);
    await endClean(page);
  });

  await checks.run('what one side does not have is no finding, and that is said', async () => {
    const page = await openFlame(browser, url, 'of=offcpu&scope=all&base=run&base_run=base:before.bin');
    await page.waitForSelector('.flame-notes .badge >> text=no waits before: all counts as new');
    await page.click('.flame-notes summary');
    await page.waitForSelector(`${NOTES}/before: no off-CPU samples in this trace/`);
    await endClean(page);
  });

  await checks.run('any other run that the server has can be compared with; a wrong one is named', async () => {
    const page = await openFlame(browser, url, 'scope=all');
    await page.waitForSelector(`${BASE} option >> text=profile.bin`, { state: 'attached' });
    await page.selectOption(BASE, { label: 'profile.bin' });
    await page.waitForSelector(`${NOTES}/can't be compared|before → /`);
    await page.close();
    const gone = await openFlame(browser, url, 'scope=all&base=run&base_run=gone.bin');
    await gone.waitForSelector(`.flame-notes [role=alert] >> text=no run 'gone.bin'`);
    await gone.close();
  });

  await checks.run('compared traces read well in light and dark, small and large', async () => {
    const page = await openFlame(browser, url, 'scope=all&base=run&base_run=base:before.bin');
    await page.waitForSelector(`${NOTES}before is of another build of shop`);
    await ready(page);
    for (const [theme, width] of [['light', 1280], ['light', 2560], ['dark', 2560], ['dark', 1280]]) {
      await page.setViewportSize({ width, height: width === 1280 ? 800 : 1400 });
      if (theme === 'dark' && width === 2560) await page.click('text=Dark');
      await ready(page);
      await page.screenshot({ path: `${screens}/flame-base-${width}-${theme}.png` });
      const problems = await axeProblems(page);
      expect(problems.length === 0, `axe, ${theme}: ${problems.join('\n')}`);
    }
    await page.click('text=Light');
    await endClean(page);
  });

  await checks.run('the list of runs marks the base', async () => {
    const page = await openPage(browser, url);
    await page.waitForSelector('tr:has-text("before.bin") .tag >> text=base');
    await endClean(page);
  });
}
