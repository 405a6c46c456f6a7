// The flame graph: of the whole and of a part, search, table, and from a frame to its moments.
// SPDX-License-Identifier: Apache-2.0
import { axeProblems, expect, openPage, ready, until } from './harness.mjs';

const RUN = '#run=profile.bin';

async function settled(page) {
  await page.waitForSelector('.flame[aria-busy="false"]');
}

export async function checkFlame(checks, { browser, url, screens }) {
  const page = await openPage(browser, url + RUN);
  await ready(page);

  await checks.run('the flame graph opens by its key and says what it is of', async () => {
    await page.keyboard.press('g');
    await settled(page);
    const text = await page.textContent('.flame-notes');
    expect(/CPU time: .* in \d[\d,]* samples/.test(text), text);
    await until(page, () => location.hash.includes('flame='), null, 'the flame graph in the address');
  });

  await checks.run('a search says the share of the time, in the picture and in the table', async () => {
    await page.fill('input[aria-label="find a function"]', 'price_cart');
    await until(page, () => /[\d.]+ % in 1 function/.test(document.querySelector('.flame-controls').textContent), null, 'the share');
    await page.check('.flame-controls >> text=Table');
    await page.waitForSelector('.flame-table >> text=price_cart');
    const rows = await page.$$('.flame-table tbody tr');
    expect(rows.length === 1, `${rows.length} rows`);
    await page.click('.flame-table >> text=price_cart');
    await page.waitForSelector('.flame-table.hidden', { state: 'attached' });
    await page.fill('input[aria-label="find a function"]', '');
  });

  await checks.run('a frame leads to its moments, and a moment back to the flame graph', async () => {
    await page.focus('.flame canvas');
    await page.keyboard.press('ArrowDown');
    await page.waitForSelector('.flame-chosen code');
    await page.click('text=Its moments on the timeline');
    await page.waitForSelector('.flame-steps >> text=/moments?/');
    await page.click('button[aria-label="next moment"]');
    await page.waitForSelector('#panel-details >> text=CPU sample');
    await page.click('text=In the flame graph');
    const search = await page.inputValue('input[aria-label="find a function"]');
    expect(search !== '', 'the function is searched for');
    await page.fill('input[aria-label="find a function"]', '');
  });

  await checks.run('the flame graph reads well in light and dark, small and large', async () => {
    for (const [theme, width] of [['light', 1280], ['dark', 2560]]) {
      await page.setViewportSize({ width, height: width === 1280 ? 800 : 1400 });
      if (theme === 'dark') await page.click('text=Dark');
      await settled(page);
      await page.screenshot({ path: `${screens}/flame-${width}-${theme}.png` });
      const problems = await axeProblems(page);
      expect(problems.length === 0, `axe, ${theme}: ${problems.join('\n')}`);
    }
    await page.click('text=Light');
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await checks.run('a span and a poll lead to the flame graph of exactly that one', async () => {
    const cases = [['span=0', 'task=7', '10 samples'], ['poll=1', 'worker=0', '0 samples']];
    for (const [what, filter, count] of cases) {
      const other = await openPage(browser, `${url}${RUN}&${what}&panel=details`);
      await other.click('text=Flame graph of it');
      await other.waitForSelector(`.flame-notes >> text=in ${count}`);
      const choice = decodeURIComponent(new URL(other.url()).hash);
      expect(choice.includes('stretch=') && choice.includes(filter), choice);
      await other.close();
    }
  });

  await checks.run('a trace without samples says how to get them', async () => {
    const other = await openPage(browser, `${url}#run=tiny.bin&flame=`);
    await other.waitForSelector('.flame >> text=/no CPU samples.*add_cpu_samples/');
    await other.close();
  });

  await checks.run('its address shows it again', async () => {
    await page.check('.flame-controls >> text=Inverted');
    await until(page, () => location.hash.includes('inverted'), null, 'the choice in the address');
    const again = await openPage(browser, page.url());
    await again.waitForSelector('.flame[aria-busy="false"]');
    expect(await again.isChecked('.flame-controls >> text=Inverted'), 'inverted');
    await again.close();
  });
  expect(page.problems.length === 0, page.problems.join('\n'));
  await page.close();
}
