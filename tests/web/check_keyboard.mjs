// Without a pointer: the Tab key comes round and is seen wherever it stands, rows are walked and
// selected, lists and choices keep the focus. And at 1280 px no name and no number is cut.
// SPDX-License-Identifier: Apache-2.0
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, openPage, parameter, ready, until } from './harness.mjs';

const LONG = 'demo-trace.2026-04-16.403fe612.of-a-host-with-a-name-as-long-as-names-of-hosts-are.bin';
const MOST_STOPS = 60;

/** What has the focus: a text, and whether it is seen. */
const focus = (page) => page.evaluate(() => {
  const at = document.activeElement;
  const name = at.getAttribute('aria-label') ?? at.textContent;
  const isSeen = Number.parseFloat(getComputedStyle(at).outlineWidth) >= 2;
  return { tag: at.tagName, name: name.slice(0, 60), isSeen, isRow: at.classList.contains('vrow') };
});

/** Elements of which a part can't be seen, and texts beyond the window. */
const cut = (page) => page.evaluate(() => {
  const texts = [...document.querySelectorAll('.topbar *, .labels *, .legend *, .tabs *, .vrow *, .head *')];
  return texts
    .filter((element) => element.tagName !== 'INPUT' && element.clientWidth > 0)
    .filter((element) => {
      const { right, bottom } = element.getBoundingClientRect();
      const isHidden = getComputedStyle(element).overflowX !== 'visible';
      return right > innerWidth + 1 || (isHidden && element.scrollWidth > element.clientWidth + 1) ||
        (element.closest('.topbar') && bottom > document.querySelector('.topbar').getBoundingClientRect().bottom + 1);
    })
    .map((element) => element.textContent.slice(0, 80));
});

export async function checkKeyboard(checks, { browser, url, out }) {
  await checks.run('names and numbers are whole at 1280 px, of a long name too', async () => {
    const copy = join(out, 'traces', LONG);
    copyFileSync(join(out, 'traces', 'truncated.bin'), copy);
    const page = await openPage(browser, `${url}#run=${LONG}&task=42&panel=task`);
    await ready(page);
    await page.waitForSelector('.vrow');
    const found = await cut(page);
    expect(found.length === 0, found.join('\n'));
    const text = await page.textContent('.topbar');
    expect(text.includes(LONG) && text.includes('at least 200,004 events'), text);
    await page.close();
    rmSync(copy);
  });

  await checks.run('a file that is no segment by its name is not called sealed', async () => {
    const page = await openPage(browser, url);
    await page.waitForSelector('table');
    const text = await page.textContent('tbody');
    expect(!text.includes('sealed') && text.includes('not known'), text);
    await page.close();
  });

  const page = await openPage(browser, `${url}#run=service.bin&task=42&panel=task`);
  await ready(page);
  await page.waitForSelector('.vrow');

  await checks.run('the Tab key stops everywhere once, is seen there, and comes round', async () => {
    const stops = [];
    for (let i = 0; i < MOST_STOPS; i += 1) {
      await page.keyboard.press('Tab');
      const stop = await focus(page);
      if (stop.tag === 'BODY') break;
      stops.push(stop);
    }
    const unseen = stops.filter(({ isSeen }) => !isSeen);
    expect(unseen.length === 0, JSON.stringify(unseen));
    expect(stops.length < MOST_STOPS, `it is held in ${JSON.stringify(stops.slice(-4))}`);
    for (const name of ['search', 'zoom in', 'Flame graph', 'keys', 'timeline rows', 'Task 42', 'life of task']) {
      expect(stops.some((stop) => stop.name.includes(name)), `${name}: ${JSON.stringify(stops)}`);
    }
  });

  await checks.run('arrows walk through a list, also where its rows are still asked for', async () => {
    await page.focus('.vlist');
    for (let i = 0; i < 40; i += 1) await page.keyboard.press('ArrowDown');
    expect((await focus(page)).isRow, JSON.stringify(await focus(page)));
    await page.keyboard.press('End');
    await until(page, () => document.activeElement.classList.contains('vrow'), null, 'the last row');
    const last = await page.evaluate(() => Number(document.activeElement.parentElement.dataset.index));
    const { rows_total: total } = await page.evaluate(
      async () => (await fetch('api/v1/runs/service.bin/tasks/42?limit=1')).json());
    expect(last === total - 1, `${last} of ${total}`);
    await page.keyboard.press('PageUp');
    expect((await focus(page)).isRow, 'a row a screen above');
    const before = page.url();
    await page.keyboard.press('Enter');
    await until(page, (old) => location.href !== old, before, 'its place');
    await page.keyboard.press('Home');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    expect((await focus(page)).name.startsWith('Unselect'), 'out of the list');
  });
  await page.close();

  await checks.run('every kind of row is walked to and selected from', async () => {
    const other = await openPage(browser, `${url}#run=profile.bin`);
    await ready(other);
    await other.focus('.rows');
    for (const what of ['poll|park', 'sample', 'event', 'span']) {
      await other.keyboard.press('ArrowDown');
      await other.keyboard.press('Enter');
      const pattern = `[#&](${what})=`;
      await until(other, (wanted) => new RegExp(wanted).test(location.hash), pattern, `a selected ${what}`);
    }
    const said = await other.textContent('.rows [role=status]');
    expect(said.startsWith('span row 1'), said);
    expect(parameter(other.url(), 'panel') === 'details', other.url());
    await other.close();
  });

  await checks.run("a queue's value is told without a pointer", async () => {
    const other = await openPage(browser, `${url}#run=service.bin`);
    await ready(other);
    await other.focus('.rows');
    for (const key of ['ArrowDown', 'ArrowUp', 'Enter']) await other.keyboard.press(key);
    const said = await other.textContent('.rows [role=status]');
    expect(/main: tasks alive: \d+/.test(said), said);
    await other.waitForSelector('.tooltip:not(.hidden) >> text=tasks alive');
    await other.close();
  });

  await checks.run('headings and choices keep the focus when they are used', async () => {
    const other = await openPage(browser, `${url}#run=profile.bin`);
    await ready(other);
    await other.focus('.labels select');
    const name = (await focus(other)).name;
    await other.selectOption('.labels select', { index: 1 });
    expect((await focus(other)).name === name, JSON.stringify(await focus(other)));
    await other.focus('.labels .pager button:not(:disabled)');
    await other.keyboard.press('Enter');
    await other.waitForSelector('.pager >> text=rows 1,025');
    const { tag } = await focus(other);
    expect(tag === 'BUTTON' || tag === 'BODY', tag);  // › is now disabled: nothing to stand on
    await other.focus('.labels .heading');
    await other.keyboard.press('Enter');
    expect((await focus(other)).name.startsWith('▸ Workers'), JSON.stringify(await focus(other)));
    await other.close();
  });
}
