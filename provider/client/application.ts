// One application, from C_Initialize to C_Finalize (PKCS#11 2.40, sections 2.4 and 5.6): its sessions, its login state, its
// session objects, and its way to the service. Everything it holds is released when it ends.
import { randomUUID } from 'node:crypto';
import { core, type KeyRef } from '../../addon/core.ts';
import {
  type InstanceHeader,
  instanceText,
  type ServiceInfo,
  type TokenObject,
} from '../../server/fronts/contract/tde.ts';
import { CKA } from '../schema/attributes.ts';
import { CKR } from '../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from './attribute-blob.ts';
import type { Told } from './causes.ts';
import type { LogLevel } from './config.ts';
import {
  keyInvalid,
  notLoggedIn,
  objectInvalid,
  sessionInvalid,
  sessionReadOnly,
  unwrappingKeyInvalid,
  wrappingKeyInvalid,
} from './errors.ts';
import { firstOfConnection, firstSessionObject, HandleMap } from './handle-map.ts';
import type { ResumedSession } from './hello.ts';
import { KeyRoles } from './key-roles.ts';
import type { LogFields } from './log.ts';
import { ObjectIndex } from './object-index.ts';
import { isTrue, type ObjectView, type SessionObject, type SharedKey, type TokenView, viewOf } from './object-view.ts';
import type { Head, RouteName, ServiceAnswer, ServiceDoor } from './service.ts';
import { Session } from './session.ts';
import { UsedIvs } from './used-ivs.ts';

/** Token objects whose fixed properties (class, type, size, private) are remembered, so that an Init asks one question. */
const maxRemembered = 4096;
/** Sessions of one application; more is a leak in it. */
export const maxSessions = 65_536;

export type ApplicationLog = (level: LogLevel, fields: LogFields, message: string) => void;

/** A label as a line of a log takes it. */
export const printableLabel = (label: Uint8Array): string =>
  Buffer.from(label)
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 128);

/** As what a handle stands in a call. */
export type Named = 'object' | 'key' | 'wrapping' | 'unwrapping';

const invalid = {
  object: objectInvalid,
  key: keyInvalid,
  wrapping: wrappingKeyInvalid,
  unwrapping: unwrappingKeyInvalid,
} as const satisfies Record<Named, () => Error>;

export class Application {
  loggedIn = false;
  readonly sessions = new HandleMap<Session>(1);
  readonly roles = new KeyRoles();
  readonly usedIvs = new UsedIvs();
  readonly #door: ServiceDoor;
  readonly #instance: string;
  readonly #log: ApplicationLog;
  readonly #objects: HandleMap<SessionObject>;
  readonly #index = new ObjectIndex();
  readonly #tokens = new Map<number, TokenView>();
  #info: ServiceInfo | null = null;
  #recipient: KeyRef | null = null;

  /** `connection`: the number of the process' connection, as its library counts them. */
  constructor(door: ServiceDoor, instance: InstanceHeader, log: ApplicationLog, connection = 0) {
    this.#objects = new HandleMap(firstOfConnection(connection));
    this.#door = door;
    this.#instance = instanceText(instance);
    this.#log = log;
  }

  /** A line about what is no failure of a call. */
  tell(level: LogLevel, fields: LogFields, { cause, line }: Told): void {
    this.#log(level, { ...fields, cause }, line);
  }

  // --- service --------------------------------------------------------------------------------------------------------

  /** Asks the service. `raw` is given away: the door wipes it. */
  ask<R extends RouteName>(
    route: R,
    handle: number | null,
    head: Head<R>,
    raw: Uint8Array<ArrayBuffer> | null = null,
    requestId: string = randomUUID(),
  ): Promise<ServiceAnswer<R>> {
    return this.#door.call({ route, handle, head, raw }, { requestId, instance: this.#instance });
  }

  /** What the service calls this application; asked once. */
  async info(): Promise<ServiceInfo> {
    this.#info ??= (await this.ask('info', null, {})).answer;
    return this.#info;
  }

  /** The key pair that keys from the service are sealed to: made when it is first needed, gone with the application. */
  recipient(): KeyRef {
    this.#recipient ??= core.generateHpkeKey();
    return this.#recipient;
  }

  // --- sessions and login ---------------------------------------------------------------------------------------------

  openSession(readWrite: boolean): Session {
    if (this.sessions.size >= maxSessions) throw new CryptokiError(CKR.SESSION_COUNT, 'too many sessions');
    return this.sessions.add((handle) => new Session(handle, this, readWrite));
  }

  resumeSession({ handle }: ResumedSession, readWrite: boolean): void {
    this.sessions.restore(handle, new Session(handle, this, readWrite));
  }

  session(handle: number): Session {
    const session = this.sessions.get(handle);
    if (session === undefined) throw sessionInvalid();
    return session;
  }

  /** Its session objects go with it; with the last session the user is logged out. */
  closeSession(session: Session): void {
    session.close();
    this.sessions.delete(session.handle);
    for (const object of [...session.objects]) this.removeObject(object);
    if (this.sessions.size === 0) this.loggedIn = false;
  }

  closeAllSessions(): void {
    for (const session of [...this.sessions.values()]) this.closeSession(session);
  }

  login(): void {
    this.loggedIn = true;
  }

  /** Private session objects are destroyed, and what runs on private objects ends. Handles of token objects never change. */
  logout(): void {
    this.loggedIn = false;
    for (const session of this.sessions.values()) session.cancelAll((operation) => operation.private);
    this.#releaseObjects((object) => isTrue(object, CKA.PRIVATE));
  }

  // --- objects --------------------------------------------------------------------------------------------------------

  /** The session object of this handle as far as the user may see it; undefined for handles of token objects. */
  sessionObject(handle: number, named: Named): SessionObject | undefined {
    if (handle < firstSessionObject) return undefined;
    const object = this.#objects.get(handle);
    if (object === undefined || !this.sees(object)) throw invalid[named]();
    return object;
  }

  /** The token object of this handle; `fresh` asks the service even if its fixed properties are known. */
  async tokenObject(handle: number, named: Named, fresh: boolean): Promise<TokenView> {
    if (handle <= 0 || !Number.isInteger(handle)) throw invalid[named]();
    const known = fresh ? undefined : this.#tokens.get(handle);
    const view = known ?? this.remember((await this.ask('getObject', handle, {})).answer);
    if (!this.sees(view)) throw invalid[named]();
    return view;
  }

  async object(handle: number, named: Named, fresh: boolean): Promise<ObjectView> {
    return this.sessionObject(handle, named) ?? (await this.tokenObject(handle, named, fresh));
  }

  remember(object: TokenObject): TokenView {
    const view = viewOf(object);
    this.#tokens.delete(view.handle);
    this.#tokens.set(view.handle, view);
    if (this.#tokens.size > maxRemembered) {
      const [oldest] = this.#tokens.keys();
      if (oldest !== undefined) this.#tokens.delete(oldest);
    }
    return view;
  }

  /** The label of a token object, for the log, where it is known and can be read. */
  labelOf(handle: number | null): string | undefined {
    const label = handle === null ? undefined : this.#tokens.get(handle)?.attributes.get(CKA.LABEL);
    return label instanceof Uint8Array ? printableLabel(label) : undefined;
  }

  forget(handle: number): void {
    this.#tokens.delete(handle);
  }

  sees(view: ObjectView): boolean {
    return this.loggedIn || !isTrue(view, CKA.PRIVATE);
  }

  /** The session objects that the user may see, among them all that match the template. */
  *sessionObjects(template: readonly Attribute[]): Generator<SessionObject> {
    const candidates = this.#index.candidates(template) ?? this.#objects.values();
    for (const object of candidates) if (this.sees(object)) yield object;
  }

  /** The attributes of every session object, seen or not. */
  *allAttributes(): Generator<ReadonlyAttributes> {
    for (const { attributes } of this.#objects.values()) yield attributes;
  }

  /** The session keys that are decrypting at this moment. */
  *decrypting(): Generator<KeyRef> {
    for (const { decrypt, messageDecrypt } of this.sessions.values()) {
      if (decrypt?.key !== undefined) yield decrypt.key;
      if (messageDecrypt?.key !== undefined) yield messageDecrypt.key;
    }
  }

  /** Keeps a new session object. The key is the object's from here on. */
  addObject(session: Session, attributes: AttributeMap, key: SharedKey | null): SessionObject {
    const object = this.#objects.add((handle) => ({ where: 'session', handle, attributes, key, session }) as const);
    this.#index.add(object);
    session.objects.add(object);
    return object;
  }

  /** Changes attributes of a session object. */
  changeObject(object: SessionObject, changed: ReadonlyAttributes): void {
    this.#index.delete(object);
    for (const [type, value] of changed) object.attributes.set(type, value);
    this.#index.add(object);
  }

  removeObject(object: SessionObject): void {
    if (!this.#objects.delete(object.handle)) return;
    this.#index.delete(object);
    object.session.objects.delete(object);
    object.key?.release();
  }

  /** Whether this session may make, change or destroy an object that is on the token, or private. */
  checkMayWrite(session: Session, onToken: boolean, isPrivate: boolean): void {
    if (onToken && !session.readWrite) throw sessionReadOnly();
    if (isPrivate && !this.loggedIn) throw notLoggedIn();
  }

  #releaseObjects(which: (object: SessionObject) => boolean): void {
    for (const object of [...this.#objects.values()]) if (which(object)) this.removeObject(object);
  }

  /** Ends everything. The application is not to be used after it. */
  end(): void {
    this.closeAllSessions();
    this.#releaseObjects(() => true);
    this.#tokens.clear();
    if (this.#recipient !== null) core.release(this.#recipient);
    this.#recipient = null;
  }
}
