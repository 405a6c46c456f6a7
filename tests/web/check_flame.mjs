// The flame graph: of the whole and of a part, on and off the CPU, of the heap, its views, search,
// differences, and from a frame to its moments.
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
    await page.selectOption('select[aria-label="view"]', 'table');
    await page.waitForSelector('.flame-table >> text=price_cart');
    const rows = await page.$$('.flame-table tbody tr');
    expect(rows.length === 1, `${rows.length} rows`);
    await page.click('.flame-table .name >> text=price_cart');
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
    const cases = [['span=0', 'task=7', '0 stacks'], ['poll=1', 'worker=0', '0 stacks']];
    for (const [what, filter, count] of cases) {
      const other = await openPage(browser, `${url}${RUN}&${what}&panel=details`);
      await other.click('text=Flame graph of it');
      await other.waitForSelector(`.flame-notes >> text=in ${count}`);
      const choice = decodeURIComponent(new URL(other.url()).hash);
      expect(choice.includes('stretch=') && choice.includes(filter), choice);
      await other.close();
    }
  });

  await checks.run('one click from a request shows exactly that one on and off the CPU', async () => {
    const other = await openPage(browser, `${url}#run=flame.bin&span=0&panel=details`);
    await other.click('text=Flame graph of it');
    await other.waitForSelector('.flame-notes >> text=/Time on and off the CPU: 80 ms in 22 stacks/');
    for (const part of ['on CPU 25 %', 'socket 62.5 %', 'lock 12.5 %']) {
      await other.waitForSelector(`.flame-key >> text=${part}`);
    }
    expect((await other.textContent('#panel-details')).includes('0x8000000000000001'), 'the id as the CLI takes it');
    await other.screenshot({ path: `${screens}/flame-request-1280-light.png` });
    await other.focus('.flame canvas');
    await other.keyboard.press('ArrowDown');
    await other.click('text=Its moments on the timeline');
    await other.click('button[aria-label="next moment"]');
    await other.waitForSelector('#panel-details >> text=Wait off the CPU');
    await other.waitForSelector('#panel-details >> text=recv');
    expect(other.problems.length === 0, other.problems.join('\n'));
    await other.close();
  });

  await checks.run('its views: order of time, around a function, by call, locks', async () => {
    const other = await openPage(browser, `${url}#run=flame.bin&flame=of%3Dtime%26scope%3Dall%26view%3Dtime`);
    await other.waitForSelector('.flame-notes >> text=/110 ms in 52 stacks/');
    const view = 'select[aria-label="view"]';
    await other.selectOption(view, 'butterfly');
    await other.click('button[aria-label="callers and callees of kv_get"]');
    await other.waitForSelector('.flame-notes >> text=/60 ms in 2 stacks, 54.5 %/');
    await other.screenshot({ path: `${screens}/flame-butterfly-1280-light.png` });
    await other.selectOption(view, 'icicle');
    await other.selectOption('select[aria-label="what stands on top"]', 'call');
    await other.selectOption('select[aria-label="what the flame graph is of"]', 'locks');
    await other.waitForSelector('.flame-notes >> text=/Off-CPU time in locks: 10 ms in 1 wait/');
    expect(other.problems.length === 0, other.problems.join('\n'));
    await other.close();
  });

  await checks.run('a stretch is compared with the one before it, each by its own sum', async () => {
    const flame = encodeURIComponent('stretch=250000000,400000000&base=previous');
    const other = await openPage(browser, `${url}#run=flame.bin&flame=${flame}`);
    await other.waitForSelector('.flame-notes >> text=/20 ms in 20 samples before → 30 ms in 30 samples now/');
    await other.fill('input[aria-label="find a function"]', 'write_log');
    await other.waitForSelector('.flame-controls >> text=/0 ns, 0 % → 30 ms, 100 % .*100 points/');
    await other.fill('input[aria-label="find a function"]', '');
    await other.screenshot({ path: `${screens}/flame-diff-1280-light.png` });
    await other.selectOption('select[aria-label="view"]', 'table');
    await other.waitForSelector('.flame-table >> text=Change of self');
    expect(other.problems.length === 0, other.problems.join('\n'));
    await other.close();
  });

  await checks.run('the heap shows what was allocated and what lives, and says that it is uncertain', async () => {
    const other = await openPage(browser, `${url}#run=heap.bin&flame=of%3Dlive%26scope%3Dall`);
    await other.waitForSelector('.flame-notes >> text=/Live heap: .* in 90 allocations/');
    await other.waitForSelector('.flame-notes >> text=figures uncertain');
    await other.selectOption('select[aria-label="what the flame graph is of"]', 'allocated');
    await other.check('.flame-controls >> text=Counts');
    await other.waitForSelector('.flame-notes >> text=/Allocated: 100 in 100 allocations/');
    await other.close();
  });

  await checks.run('a finding leads to the flame graph of exactly its stretch', async () => {
    const other = await openPage(browser, `${url}#run=service.bin`);
    await other.waitForSelector('.finding');
    const list = await other.evaluate(async () => (await fetch('api/v1/runs/service.bin/findings')).json());
    const index = list.findings.findIndex((entry) => entry.lane !== null && entry.end_ns !== null);
    const finding = list.findings[index];
    await other.click(`.finding-entry:nth-child(${index + 1}) .opener`);
    await other.waitForSelector('.flame[aria-busy="false"]');
    const stretch = `stretch=${finding.at_ns},${finding.end_ns}`;
    await until(other, (text) => decodeURIComponent(decodeURIComponent(location.hash)).includes(text), stretch, stretch);
    await other.close();
  });

  await checks.run('a trace without samples says how to get them', async () => {
    const other = await openPage(browser, `${url}#run=tiny.bin&flame=`);
    await other.waitForSelector('.flame >> text=/no CPU samples.*add_cpu_samples/');
    await other.close();
  });

  await checks.run('its address shows it again', async () => {
    await page.selectOption('select[aria-label="view"]', 'inverted');
    await until(page, () => location.hash.includes('inverted'), null, 'the choice in the address');
    const again = await openPage(browser, page.url());
    await again.waitForSelector('.flame[aria-busy="false"]');
    expect((await again.inputValue('select[aria-label="view"]')) === 'inverted', 'inverted');
    await again.close();
  });
  expect(page.problems.length === 0, page.problems.join('\n'));
  await page.close();
}
