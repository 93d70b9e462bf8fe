// One application, from C_Initialize to C_Finalize (PKCS#11 2.40, sections 2.4 and 5.6): its
// sessions, its login state, its session objects, and its way to the service. Everything it holds
// is released when it ends.
import { core, type KeyRef } from '../../../addon/core.ts';
import type { CompatibilitySwitch } from '../../../server/base/compatibility-switches.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import {
  boundTo,
  encodeHead,
  type Heads,
  headBytes,
  type InstanceHeader,
  instanceText,
  keyForServiceInfo,
  onceRoutes,
  packSealed,
  recipientChanged,
  type ServiceInfo,
  type TokenObject,
} from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import { type Told, ToldError, tell } from '../causes.ts';
import type { AttributeMap, ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { ObjectIndex } from '../objects/object-index.ts';
import {
  isTrue,
  type ObjectView,
  type SessionObject,
  type SharedKey,
  type TokenView,
  viewOf,
} from '../objects/object-view.ts';
import { uniqueId } from '../objects/unique-id.ts';
import { UsedIvs } from '../objects/used-ivs.ts';
import {
  isGone,
  keyInvalid,
  notLoggedIn,
  objectInvalid,
  sessionInvalid,
  sessionReadOnly,
  unwrappingKeyInvalid,
  wrappingKeyInvalid,
} from '../return-values.ts';
import type { RouteName, ServiceAnswer, ServiceDoor } from '../service/service-door.ts';
import type { LogLevel } from '../settings/config.ts';
import type { LogFields } from '../settings/log.ts';
import { firstOfConnection, firstSessionObject, HandleMap } from './handle-map.ts';
import type { ResumedSession } from './hello.ts';
import { KeyRoles } from './key-roles.ts';
import { andThen, type Later } from './later.ts';
import { SessionState } from './session-state.ts';
import { inSlices, untilDone } from './slices.ts';
import { type Account, ownAccount, valueBytes } from './user-limits.ts';

/**
 * Token objects whose fixed properties (class, type, size, private) are remembered, so that an Init
 * asks one question.
 */
const maxRemembered = 4096;
/** Most objects have less than 1 KiB of attributes. */
const maxRememberedBytes = 4 << 20;

/**
 * Recipients in a row that have expired when the key arrives: an honest service does not replace so
 * many at once.
 */
const mostRecipients = 3;
const keyInfo = Buffer.from(keyForServiceInfo);

export type ApplicationLog = (level: LogLevel, fields: LogFields, message: string) => void;

/** A label as a line of a log takes it. */
export const printableLabel = (label: Uint8Array): string =>
  Buffer.from(label)
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 128);

/** What a handle stands for in a call, which decides the error when it is invalid. */
export type Named = 'object' | 'key' | 'wrapping' | 'unwrapping';

const invalid = {
  object: objectInvalid,
  key: keyInvalid,
  wrapping: wrappingKeyInvalid,
  unwrapping: unwrappingKeyInvalid,
} as const satisfies Record<Named, () => CryptokiError>;

/** What a session object takes of its user's limits, in bytes. */
interface Cost {
  readonly memory: number;
  readonly keys: number;
}
/** About what the agent needs for an object, in addition to the bytes of its attributes. */
const objectBytes = 512;
/** A block of the key arena is a power of two, with a head of 16 bytes. */
const arenaBlock = (bytes: number): number => 2 ** Math.ceil(Math.log2(Math.max(bytes + 16, 32)));

const attributesBytes = (attributes: ReadonlyAttributes): number => {
  let bytes = objectBytes;
  for (const value of attributes.values()) bytes += valueBytes(value);
  return bytes;
};

const costOf = (attributes: ReadonlyAttributes, key: SharedKey | null): Cost => {
  const memory = attributesBytes(attributes);
  if (key === null) return { memory, keys: 0 };
  const { kind, bits } = core.describe(key.ref);
  // Secret keys are in the arena; the numbers of the others, with what libcrypto computes in
  // advance, are outside.
  const isSecret = kind === 'aes' || kind === 'generic';
  return { memory: memory + (isSecret ? 0 : bits), keys: isSecret ? arenaBlock(bits / 8) : 0 };
};

type Session = SessionState<Application>;

export class Application {
  loggedIn = false;
  /** After `end`. */
  ended = false;
  readonly sessions = new HandleMap<Session>(1);
  readonly roles: KeyRoles;
  readonly usedIvs = new UsedIvs();
  /**
   * Whether the process is a Java program, and so calls through SunPKCS11. Its own word: nothing
   * secret may depend on it.
   */
  readonly isJava: boolean;
  /** What all processes of its user have in this agent. */
  readonly account: Account;
  readonly #door: ServiceDoor;
  readonly #instance: string;
  readonly #log: ApplicationLog;
  readonly #objects: HandleMap<SessionObject>;
  readonly #index = new ObjectIndex();
  readonly #tokens = new Map<number, { readonly view: TokenView; readonly bytes: number }>();
  #tokenBytes = 0;
  #info: ServiceInfo | null = null;
  #recipient: KeyRef | null = null;
  readonly #usedSwitches = new Set<string>();

  #logouts = 0;
  readonly #costs = new Map<SessionObject, Cost>();

  /** `connection`: the number of the process' connection, as its library counts them. */
  constructor(
    door: ServiceDoor,
    instance: InstanceHeader,
    log: ApplicationLog,
    connection = 0,
    account: Account = ownAccount(),
  ) {
    this.account = account;
    this.roles = new KeyRoles(account);
    this.#objects = new HandleMap(firstOfConnection(connection));
    this.#door = door;
    this.#instance = instanceText(instance);
    this.isJava = instance.process === 'java';
    this.#log = log;
  }

  /** A line that is not about a failed call. */
  tell(level: LogLevel, fields: LogFields, { cause, line }: Told): void {
    this.#log(level, { ...fields, cause }, line);
  }

  // --- service -----------------------------------------------------------------------------------

  /** Asks the service. `raw` is given away: the door wipes it. */
  ask<R extends RouteName>(
    route: R,
    handle: number | null,
    head: Heads[R],
    raw: Uint8Array<ArrayBuffer> | null = null,
    requestId: string = uniqueId(),
  ): Promise<ServiceAnswer<R>> {
    const request = { route, handle, head: encodeHead(route, head), raw };
    return this.#door.call(request, { requestId, instance: this.#instance });
  }

  /**
   * Asks the service with a key, which stays the caller's: its value is sealed in the addon, for
   * this one request only (`boundTo`). The recipient is asked for once, and again when the service
   * has another one.
   */
  async askWithKey<R extends 'createObject' | 'wrap'>(
    route: R,
    handle: number | null,
    head: Heads[R],
    key: KeyRef,
  ): Promise<ServiceAnswer<R>> {
    const requestId = uniqueId();
    const json = headBytes(encodeHead(route, head));
    for (let attempt = 1; ; attempt++) {
      const { applicationId, recipient } = await this.info();
      const bound = boundTo(applicationId, route, handle ?? 0, onceRoutes.has(route) ? requestId : '', json);
      const publicKey = Buffer.from(recipient.publicKey, 'base64');
      const raw = packSealed({ ...recipient, publicKey }, core.hpkeSealKey(publicKey, keyInfo, bound, key));
      try {
        return await this.ask(route, handle, head, raw, requestId);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.reason !== recipientChanged || attempt === mostRecipients)
          throw error;
        this.#info = null;
      }
    }
  }

  /** What the service says of this application and of itself; asked once. */
  async info(): Promise<ServiceInfo> {
    this.#info ??= (await this.ask('info', null, {})).answer;
    return this.#info;
  }

  /**
   * The compatibility switches that are on, as far as this application has asked. Empty while the
   * service cannot be asked.
   */
  async knownSwitches(): Promise<readonly string[]> {
    try {
      return (await this.info()).compatibility ?? [];
    } catch (error) {
      if (error instanceof ServiceError) return [];
      throw error;
    }
  }

  /**
   * Throws with the return value of `refusal` unless one of the switches is on. The service is
   * asked each time, because a switch may have been changed. The first use of each one is a line in
   * the log.
   */
  async permit(switches: readonly CompatibilitySwitch[], refusal: () => CryptokiError): Promise<void> {
    this.#info = null;
    const { compatibility = [], applicationName: application } = await this.info();
    const used = switches.find((name) => compatibility.includes(name));
    const [name = ''] = used === undefined ? switches : [used];
    if (used === undefined) throw new ToldError(tell('switch-off', { name, application }), refusal().rv);
    if (!this.#usedSwitches.has(name)) this.tell('warn', {}, tell('switch-used', { name, application }));
    this.#usedSwitches.add(name);
  }

  /** Whether `permit` has found this switch on. */
  hasUsed(name: CompatibilitySwitch): boolean {
    return this.#usedSwitches.has(name);
  }

  /**
   * The key pair that keys from the service are sealed to: made when it is first needed, gone with
   * the application.
   */
  recipient(): KeyRef {
    this.#recipient ??= core.generateHpkeKey();
    return this.#recipient;
  }

  // --- sessions and login ------------------------------------------------------------------------

  openSession(readWrite: boolean): Session {
    this.account.take('sessions');
    return this.sessions.add((handle) => new SessionState(handle, this, readWrite));
  }

  resumeSession({ handle }: ResumedSession, readWrite: boolean): void {
    this.account.take('sessions');
    this.sessions.restore(handle, new SessionState(handle, this, readWrite));
  }

  session(handle: number): Session {
    const session = this.sessions.get(handle);
    if (session === undefined) throw sessionInvalid();
    return session;
  }

  /** Its session objects go with it; with the last session the user is logged out. */
  closeSession(session: Session): Later<void> {
    return this.#closeSessions([session]);
  }

  closeAllSessions(): Later<void> {
    return this.#closeSessions([...this.sessions.values()]);
  }

  /**
   * From now on the sessions and their objects are not found. Their memory is released in slices.
   */
  #closeSessions(sessions: readonly Session[]): Later<void> {
    for (const session of sessions) {
      session.closed = true;
      this.sessions.delete(session.handle);
    }
    if (this.sessions.size === 0) this.loggedIn = false;
    const closed = inSlices(this.account.uid, sessions, (session) => {
      session.close();
      this.account.give('sessions');
    });
    return andThen(closed, () => this.#removeAll(sessions.flatMap((session) => [...session.objects])));
  }

  login(): void {
    this.loggedIn = true;
  }

  /**
   * Private session objects are destroyed, and what runs on private objects ends. Handles of token
   * objects never change.
   */
  logout(): Later<void> {
    this.loggedIn = false;
    this.#logouts++;
    const running = [...this.sessions.values()].flatMap((session) =>
      session.running((operation) => operation.private).map((each) => ({ session, ...each })),
    );
    // Another thread of the process may have started something else since: that stays.
    const cancelled = inSlices(this.account.uid, running, ({ session, kind, operation }) => {
      if (session.operationOf(kind) === operation) session.cancel(kind);
    });
    const removeGone = (object: SessionObject): void => {
      if (!this.#isThere(object)) this.removeObject(object);
    };
    return andThen(cancelled, () => inSlices(this.account.uid, [...this.#objects.values()], removeGone));
  }

  // --- objects -----------------------------------------------------------------------------------

  /**
   * The session object of this handle as far as the user may see it; undefined for handles of token
   * objects.
   */
  sessionObject(handle: number, named: Named): SessionObject | undefined {
    if (handle < firstSessionObject) return undefined;
    const object = this.#objects.get(handle);
    if (object === undefined || !this.shows(object)) throw invalid[named]();
    return object;
  }

  /**
   * The token object of this handle; `fresh` asks the service even if its fixed properties are
   * known.
   */
  async tokenObject(handle: number, named: Named, fresh: boolean): Promise<TokenView> {
    if (handle <= 0 || !Number.isInteger(handle)) throw invalid[named]();
    const known = fresh ? undefined : this.#tokens.get(handle)?.view;
    const view = known ?? (await this.#fetch(handle, named));
    if (!this.sees(view)) throw invalid[named]();
    return view;
  }

  async #fetch(handle: number, named: Named): Promise<TokenView> {
    try {
      return this.remember((await this.ask('getObject', handle, {})).answer);
    } catch (error) {
      if (!(error instanceof ServiceError && isGone(error.code))) throw error;
      // The call may name two objects: the code is that of this one.
      const { rv, message } = invalid[named]();
      throw new CryptokiError(rv, message, { cause: error });
    }
  }

  async object(handle: number, named: Named, fresh: boolean): Promise<ObjectView> {
    return this.sessionObject(handle, named) ?? (await this.tokenObject(handle, named, fresh));
  }

  remember(object: TokenObject): TokenView {
    const view = viewOf(object);
    if (this.ended) return view;
    this.forget(view.handle);
    const bytes = attributesBytes(view.attributes);
    this.#tokens.set(view.handle, { view, bytes });
    this.#tokenBytes += bytes;
    this.account.note('memory', bytes);
    this.#forgetTokens(maxRemembered);
    return view;
  }

  /**
   * Forgets the token objects that were asked for longest ago, until at most `most` are left and
   * they are small enough.
   */
  #forgetTokens(most: number): void {
    for (const handle of this.#tokens.keys()) {
      const isMuch = this.#tokenBytes > maxRememberedBytes || this.account.isFull('memory');
      if (this.#tokens.size <= most && !isMuch) return;
      this.forget(handle);
    }
  }

  /** The label of a token object, for the log, where it is known and can be read. */
  labelOf(handle: number | null): string | undefined {
    const label = handle === null ? undefined : this.#tokens.get(handle)?.view.attributes.get(CKA.LABEL);
    return label instanceof Uint8Array ? printableLabel(label) : undefined;
  }

  forget(handle: number): void {
    const known = this.#tokens.get(handle);
    if (known === undefined) return;
    this.#tokens.delete(handle);
    this.#tokenBytes -= known.bytes;
    this.account.give('memory', known.bytes);
  }

  sees(view: ObjectView): boolean {
    return this.loggedIn || !isTrue(view, CKA.PRIVATE);
  }

  /** Session objects among which all are that match the template and that the user may see. */
  candidates(template: readonly Attribute[]): Later<readonly SessionObject[]> {
    const entered = untilDone(this.account.uid, (most) => this.#index.enterSome(most));
    return andThen(entered, () => [...(this.#index.candidates(template) ?? this.#objects.values())]);
  }

  /** Whether a session object is still there, and the user may see it. */
  shows(object: SessionObject): boolean {
    return this.#objects.get(object.handle) === object && this.#isThere(object) && this.sees(object);
  }

  /**
   * False from the moment on when its session is closed, or the user of a private object logs out;
   * its memory is released later.
   */
  #isThere(object: SessionObject): boolean {
    return !object.session.closed && (object.logouts === this.#logouts || !isTrue(object, CKA.PRIVATE));
  }

  /** The attributes of every session object, seen or not. */
  *allAttributes(): Generator<ReadonlyAttributes> {
    for (const object of this.#objects.values()) if (this.#isThere(object)) yield object.attributes;
  }

  /**
   * The attributes of the session keys that are decrypting at this moment, as they were when that
   * began.
   */
  *decrypting(): Generator<ReadonlyAttributes> {
    for (const { decrypt, messageDecrypt } of this.sessions.values()) {
      if (decrypt?.keyAttributes !== undefined) yield decrypt.keyAttributes;
      if (messageDecrypt?.keyAttributes !== undefined) yield messageDecrypt.keyAttributes;
    }
  }

  /** Keeps a new session object. The key is the object's from here on, unless this throws. */
  addObject(session: Session, attributes: AttributeMap, key: SharedKey | null): SessionObject {
    const cost = costOf(attributes, key);
    this.#take(cost);
    const logouts = this.#logouts;
    const make = (handle: number) => ({ where: 'session', handle, attributes, key, session, logouts }) as const;
    const object = this.#objects.add(make);
    this.#costs.set(object, cost);
    this.#index.add(object);
    session.objects.add(object);
    return object;
  }

  /** Changes attributes of a session object. */
  changeObject(object: SessionObject, changed: ReadonlyAttributes): void {
    const before = this.#costs.get(object) as Cost;
    const memory = costOf(new Map([...object.attributes, ...changed]), null).memory;
    this.account.take('memory', memory - before.memory);
    this.#costs.set(object, { ...before, memory });
    this.#index.delete(object);
    for (const [type, value] of changed) object.attributes.set(type, value);
    this.#index.add(object);
  }

  removeObject(object: SessionObject): void {
    if (!this.#objects.delete(object.handle)) return;
    this.#index.delete(object);
    object.session.objects.delete(object);
    object.key?.release();
    const { memory, keys } = this.#costs.get(object) as Cost;
    this.#costs.delete(object);
    this.account.give('objects');
    this.account.give('memory', memory);
    this.account.give('keys', keys);
  }

  #removeAll(objects: readonly SessionObject[]): Later<void> {
    return inSlices(this.account.uid, objects, (object) => this.removeObject(object));
  }

  /** Takes what a new object needs, or throws and takes nothing. */
  #take({ memory, keys }: Cost): void {
    this.account.check('objects');
    this.account.take('memory', memory);
    try {
      this.account.take('keys', keys);
    } catch (error) {
      this.account.give('memory', memory);
      throw error;
    }
    this.account.take('objects');
  }

  /**
   * Whether this session may make, change or destroy an object that is on the token, or private.
   */
  checkMayWrite(session: Session, onToken: boolean, isPrivate: boolean): void {
    if (onToken && !session.readWrite) throw sessionReadOnly();
    if (isPrivate && !this.loggedIn) throw notLoggedIn();
  }

  /** Ends everything. The application is not to be used after it. */
  end(): Later<void> {
    this.ended = true;
    this.roles.end();
    this.usedIvs.end();
    this.#forgetTokens(0);
    if (this.#recipient !== null) core.release(this.#recipient);
    this.#recipient = null;
    // Every object belongs to a session.
    return this.closeAllSessions();
  }
}
