// A person who uses a page by keyboard alone: Tab, Enter, Escape, arrows and typing. What has the
// focus must be seen to have it, and the focus must follow the order of the page.
import type { Page } from 'playwright-core';
import { until } from './host.ts';

export interface Keyboard {
  /** Presses Tab until the element with this name has the focus; throws when it never does. */
  to(name: RegExp | string): Promise<void>;
  press(...keys: readonly string[]): Promise<void>;
  type(text: string): Promise<void>;
  /** Goes to what has this name, and presses Enter there. */
  pressOn(name: RegExp | string): Promise<void>;
  /** Goes to the field of this name, and types in place of what it holds. */
  typeInto(name: RegExp | string, text: string): Promise<void>;
  /** The name of what has the focus. */
  focused(): Promise<string>;
  /** What was wrong on the way: a focus that is not to be seen, a step back in the order. */
  readonly faults: readonly string[];
}

interface Focus {
  readonly name: string;
  /** A ring is drawn around it, or around the frame that it fills. */
  readonly seen: boolean;
  readonly inView: boolean;
  /** The focus moved back: the element is before the last one, in the same dialog or page. */
  readonly back: boolean;
  /** The end of the page: the next one is its first. */
  readonly outside: boolean;
}

// The name by which a person would call what has the focus.
const nameOf = `(element) => {
  const labelled = element.getAttribute('aria-labelledby');
  const label = labelled === null ? null : labelled.split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' ');
  return (element.getAttribute('aria-label') ?? label ?? (element.labels?.[0] ?? element).textContent ?? '').trim();
}`;

const look = `(() => {
  const element = document.activeElement;
  const outside = element === null || element === document.body;
  if (outside) { window.lastFocus = undefined; return { name: '', seen: true, inView: true, back: false, outside }; }
  const name = (${nameOf})(element);
  const style = getComputedStyle(element);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
  const box = element.getBoundingClientRect();
  const inView = box.bottom > 0 && box.top < window.innerHeight && box.right > 0 && box.left < window.innerWidth;
  const before = window.lastFocus;
  const sameFrame = before?.isConnected === true && before.closest('dialog') === element.closest('dialog');
  const back = sameFrame && before !== element && (before.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
  window.lastFocus = element;
  return { name, seen, inView, back, outside };
})()`;

// Whether the page holds anything of this name that can take the focus: the answer to the last key
// may still be on its way.
const isThere = `([source, flags, exact]) => {
  const nameOf = ${nameOf};
  const fits = (name) => (exact === null ? new RegExp(source, flags).test(name) : name === exact);
  const reachable = 'a[href], button, input, select, textarea, summary, [tabindex]';
  return [...document.querySelectorAll(reachable)].some((element) => !element.matches(':disabled') && fits(nameOf(element)));
}`;

export const useKeyboard = (page: Page): Keyboard => {
  const faults: string[] = [];
  const most = 150;
  const focused = async (): Promise<string> => (await page.evaluate<Focus>(look)).name;
  const to: Keyboard['to'] = async (wanted) => {
    const fits = (name: string): boolean => (typeof wanted === 'string' ? name === wanted : wanted.test(name));
    const passed: string[] = [];
    const arguments_ = typeof wanted === 'string' ? ['', '', wanted] : [wanted.source, wanted.flags, null];
    // Not by waitForFunction: the page's content security policy refuses a function from a text.
    await until(`"${wanted}" on the page`, async () => {
      const found = page.evaluate<boolean>(`(${isThere})(${JSON.stringify(arguments_)})`);
      // The browser may be navigating to another page now.
      return (await found.catch(() => false)) ? true : undefined;
    });
    let { name, outside } = await page.evaluate<Focus>(look);
    for (let presses = 0; presses < most; presses += 1) {
      if (!outside && fits(name)) return;
      const before = outside;
      await page.keyboard.press('Tab');
      const focus = await page.evaluate<Focus>(look);
      ({ name, outside } = focus);
      passed.push(name);
      if (outside) continue;
      if (!focus.seen) faults.push(`the focus on "${name}" is not to be seen`);
      if (!focus.inView) faults.push(`"${name}" has the focus outside of the window`);
      if (focus.back && !before) faults.push(`the focus goes back to "${name}"`);
    }
    throw new Error(`the keyboard does not reach ${wanted}: ${[...new Set(passed)].join(' | ')}`);
  };
  const press: Keyboard['press'] = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const type: Keyboard['type'] = (text) => page.keyboard.type(text);
  return {
    faults,
    focused,
    to,
    press,
    type,
    pressOn: async (name) => {
      await to(name);
      await press('Enter');
    },
    typeInto: async (name, text) => {
      await to(name);
      await press('Control+A');
      await type(text);
    },
  };
};
