// Searching for objects (PKCS#11 2.40, section 5.7). Label and class go to the service's index; the
// other attributes of the template are compared here. Session objects come first; token objects
// follow page by page, as they are asked for.
import { core } from '../../../addon/core.ts';
import type { FindHead } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import type { Attribute, AttributeValue } from '../../schema/types.ts';
import { tell } from '../causes.ts';
import { classNamed, isReadable, type ObjectView } from '../objects/object-view.ts';
import { equalValues, sameOrNull } from '../objects/template.ts';
import { uniqueId } from '../objects/unique-id.ts';
import { type Application, printableLabel } from '../sessions/application.ts';
import { andThen, type Later } from '../sessions/later.ts';
import type { Operation } from '../sessions/operation.ts';
import { inSlices } from '../sessions/slices.ts';
import { listBytes } from '../sessions/user-limits.ts';
import { readValue } from './read-value.ts';

/** Token objects asked for at once. */
const page = 256;

export class FindOperation implements Operation {
  readonly private = true;
  readonly #application: Application;
  readonly #template: readonly Attribute[];
  /**
   * What the template asks for, by type. Null: two values for one attribute, which no object has.
   */
  readonly #wanted: ReadonlyMap<number, AttributeValue | null> | null;
  /** Our copies of values in the template, wiped with the operation. */
  readonly #values: Uint8Array[] = [];
  readonly #size: number;
  /** Found and not yet fetched. */
  #found: number[] = [];
  /** What to ask the service next; null when it has none left. */
  #next: FindHead | null;
  #none = true;

  constructor(application: Application, template: readonly Attribute[]) {
    this.#application = application;
    // Values that may be secret are views on the frame, which does not last until the service has
    // answered. (A Buffer's own `slice` would be one more view.)
    this.#template = template.map((attribute) => {
      if (!(attribute.value instanceof Uint8Array)) return attribute;
      const value = new Uint8Array(attribute.value);
      this.#values.push(value);
      return { ...attribute, value };
    });
    this.#size = listBytes(this.#template);
    this.#wanted = wantedOf(this.#template);
    this.#next = this.#wanted === null ? null : firstQuestion(this.#template);
  }

  /**
   * Searches session objects, and the first page of token objects; a promise when there are many,
   * or the service is asked.
   */
  begin(): Later<void> {
    return andThen(this.#lookHere(), () => {
      this.#none = this.#found.length === 0;
      if (this.#next !== null) return this.#more(this.#next);
    });
  }

  #lookHere(): Later<void> {
    if (this.#wanted === null || this.#wanted.get(CKA.TOKEN) === true) return;
    return andThen(this.#application.candidates(this.#template), (objects) =>
      inSlices(this.#application.account.uid, objects, (object) => {
        if (this.#application.shows(object) && this.#matches(object)) this.#found.push(object.handle);
      }),
    );
  }

  /** Bytes: those of the template, and the handles. */
  get held(): number {
    return this.#size + this.#found.length * 8;
  }

  /** Up to `most` handles; none means that all were returned. */
  take(most: number): readonly number[] | Promise<readonly number[]> {
    if (this.#found.length < most && this.#next !== null) return this.#takeLater(most);
    return this.#found.splice(0, most);
  }

  async #takeLater(most: number): Promise<readonly number[]> {
    while (this.#found.length < most && this.#next !== null) await this.#more(this.#next);
    return this.#found.splice(0, most);
  }

  async #more(head: FindHead): Promise<void> {
    const requestId = uniqueId();
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
    // No failure for Cryptoki, but for the database that opens: it says that it has no such key,
    // and nothing more. A data object that is not there is not a failure: databases check whether
    // they have created one before.
    if (this.#none && this.#next === null && head.label !== undefined && head.class !== 'data') {
      const label = printableLabel(Buffer.from(head.label, 'base64'));
      this.#application.tell('info', { id: requestId, label }, tell('label-missing', { label }));
    }
  }

  #matches(view: ObjectView, value?: Uint8Array): boolean {
    for (const [type, wanted] of this.#wanted ?? []) {
      const has = type === CKA.VALUE ? (value ?? valueHere(view)) : view.attributes.get(type);
      if (has === undefined || wanted === null || !equalValues(has, wanted)) return false;
    }
    return true;
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

const wantedOf = (template: readonly Attribute[]): ReadonlyMap<number, AttributeValue | null> | null => {
  const wanted = new Map<number, AttributeValue | null>();
  for (const { type, value } of template) {
    const before = wanted.get(type);
    if (before !== undefined && !sameOrNull(before, value)) return null;
    wanted.set(type, value);
  }
  return wanted;
};

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
