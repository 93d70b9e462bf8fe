// Searching for objects (PKCS#11 2.40, section 5.7). Label and class go to the service's index; the other attributes of the
// template are compared here. Session objects come first; token objects follow page by page, as they are asked for.
import { randomUUID } from 'node:crypto';
import { core } from '../../../addon/core.ts';
import type { FindHead } from '../../../server/fronts/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import type { Attribute } from '../../schema/types.ts';
import { type Application, printableLabel } from '../application.ts';
import { tell } from '../causes.ts';
import { classNamed, isReadable, type ObjectView } from '../object-view.ts';
import type { Operation } from '../session.ts';
import { equalValues } from '../template.ts';
import { readValue } from './value.ts';

/** Token objects asked for at once. */
const page = 256;

export class FindOperation implements Operation {
  readonly private = true;
  readonly #application: Application;
  readonly #template: readonly Attribute[];
  /** Our copies of values in the template, wiped with the operation. */
  readonly #values: Uint8Array[] = [];
  /** Found and not yet fetched. */
  #found: number[] = [];
  /** What to ask the service next; null when it has no more. */
  #next: FindHead | null;
  #none = true;

  constructor(application: Application, template: readonly Attribute[]) {
    this.#application = application;
    // Values that may be secret are views on the frame, which does not last until the service has answered. (A Buffer's own `slice`
    // would be one more view.)
    this.#template = template.map((attribute) => {
      if (!(attribute.value instanceof Uint8Array)) return attribute;
      const value = new Uint8Array(attribute.value);
      this.#values.push(value);
      return { ...attribute, value };
    });
    this.#next = firstQuestion(this.#template);
  }

  /** Looks at session objects now, and at the first page of token objects; a promise only when the service is asked. */
  begin(): void | Promise<void> {
    if (!this.#template.some(({ type, value }) => type === CKA.TOKEN && value === true)) {
      for (const object of this.#application.sessionObjects(this.#template)) {
        if (this.#matches(object)) this.#found.push(object.handle);
      }
      this.#none = this.#found.length === 0;
    }
    if (this.#next !== null) return this.#more(this.#next);
  }

  /** Up to `most` handles; none means that there are no more. */
  take(most: number): readonly number[] | Promise<readonly number[]> {
    if (this.#found.length < most && this.#next !== null) return this.#takeLater(most);
    return this.#found.splice(0, most);
  }

  async #takeLater(most: number): Promise<readonly number[]> {
    while (this.#found.length < most && this.#next !== null) await this.#more(this.#next);
    return this.#found.splice(0, most);
  }

  async #more(head: FindHead): Promise<void> {
    const requestId = randomUUID();
    const { answer } = await this.#application.ask('findObjects', null, head, null, requestId);
    const found: number[] = [];
    for (const object of answer.objects) {
      const view = this.#application.remember(object);
      if (this.#application.sees(view) && (this.#matches(view) || (await this.#matchesByValue(view)))) {
        found.push(view.handle);
      }
    }
    // All of a page or nothing: after an error the same page is asked for again.
    const last = answer.objects.at(-1);
    this.#next = answer.more && last !== undefined ? { ...head, after: last.handle } : null;
    this.#found.push(...found);
    if (found.length > 0) this.#none = false;
    // No failure for Cryptoki, but for the database that opens: it says that it has no such key, and nothing more. A data object that is
    // not there is no failure for anybody: databases look whether they have put one there before.
    if (this.#none && this.#next === null && head.label !== undefined && head.class !== 'data') {
      const label = printableLabel(Buffer.from(head.label, 'base64'));
      this.#application.tell('info', { id: requestId, label }, tell('label-missing', { label }));
    }
  }

  #matches(view: ObjectView, value?: Uint8Array): boolean {
    return this.#template.every(({ type, value: wanted }) => {
      const has = type === CKA.VALUE ? (value ?? valueHere(view)) : view.attributes.get(type);
      return has !== undefined && wanted !== null && equalValues(has, wanted);
    });
  }

  /** VALUE of a token object is not at hand: it is read only when everything else matches. */
  async #matchesByValue(view: ObjectView): Promise<boolean> {
    const wanted = this.#template.find(({ type }) => type === CKA.VALUE)?.value;
    if (!(wanted instanceof Uint8Array) || !isReadable(view) || !this.#matches(view, wanted)) return false;
    return equalValues(await readValue(this.#application, view), wanted);
  }

  cancel(): void {
    for (const value of this.#values) if (value.length > 0) core.wipe(value);
    this.#found = [];
    this.#next = null;
  }
}

/** VALUE of a session data object; a key's is not compared: that would tell it. */
const valueHere = (view: ObjectView) => (view.where === 'session' ? view.attributes.get(CKA.VALUE) : undefined);

const firstQuestion = (template: readonly Attribute[]): FindHead | null => {
  const find = (type: number) => template.find((attribute) => attribute.type === type)?.value;
  if (find(CKA.TOKEN) === false) return null;
  const label = find(CKA.LABEL);
  const wanted = find(CKA.CLASS);
  const objectClass = wanted === undefined ? undefined : classNamed(Number(wanted));
  // A class that the service does not store has no token objects.
  if (wanted !== undefined && objectClass === undefined) return null;
  return {
    ...(label instanceof Uint8Array ? { label: Buffer.from(label).toString('base64') } : {}),
    ...(objectClass === undefined ? {} : { class: objectClass }),
    after: 0,
    limit: page,
  };
};
