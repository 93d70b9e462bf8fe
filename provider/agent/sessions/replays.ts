// What the addon may do on its own (addon/core/frames/replay_cache.h): an Init and its operation,
// both answered before, under a session key. This file decides when, from the table of calls; how a
// message looks and what comes of it was decided where it was first answered.
//
// A replay is bound to be right because nothing that an Init reads has changed since: every call
// that could change a key, a session or the login makes the addon forget (nothing else can change
// them: session objects belong to the connection), while such a call waits for the service nothing
// is learned, and an Init that comes here suspends the replays of its kind in its session until an
// operation of the kind has ended well here. What the addon cannot do comes here, behind each Init
// that it has answered and whose operation is still to come, so that operations are always where
// they would be without it.
import type { FrameServer, Replay, ReplayInOnePiece, ReplayInParts } from '../../../addon/core.ts';
import { type CallName, calls } from '../../schema/calls.ts';
import type { Call } from '../../schema/types.ts';
import { type Envelope, initialValue, type Witness } from '../codec/dispatcher.ts';
import type { Operations, Repeatable } from './operation.ts';

/** The part of the frame server that keeps replays. */
export type Repeater = Pick<FrameServer, 'learn' | 'suspend' | 'resume' | 'forget'>;

/** The kinds of operation that have replays, by their number for the addon. */
const kinds = ['encrypt', 'decrypt', 'sign'] as const;
type Kind = (typeof kinds)[number];

type Role =
  | { readonly is: 'init' | 'operation' | 'part' | 'last'; readonly kind: Kind }
  | { readonly is: 'change' }
  | null;

const roleOfName: ReadonlyMap<string, 'operation' | 'part' | 'last'> = new Map([
  ['C_Encrypt', 'operation'],
  ['C_Decrypt', 'operation'],
  ['C_Sign', 'operation'],
  ['C_EncryptUpdate', 'part'],
  ['C_DecryptUpdate', 'part'],
  ['C_EncryptFinal', 'last'],
  ['C_DecryptFinal', 'last'],
]);
const kindOf = (name: string | undefined): Kind | undefined => kinds.find((kind) => kind === name);

const roleOf = (name: CallName): Role => {
  const { starts, ends, continues, quiet }: Call = calls[name];
  const started = kindOf(starts);
  if (started !== undefined) return { is: 'init', kind: started };
  const kind = kindOf(ends ?? continues?.[0]);
  const is = roleOfName.get(name);
  if (kind !== undefined && is !== undefined) return { is, kind };
  const leavesAll = quiet === true || starts !== undefined || ends !== undefined || continues !== undefined;
  return leavesAll ? null : { is: 'change' };
};
const roles = Object.fromEntries((Object.keys(calls) as CallName[]).map((name) => [name, roleOf(name)])) as Readonly<
  Record<CallName, Role>
>;

/** An Init that was answered here and whose operation is to come. */
interface RunningOperation {
  readonly init: Buffer;
  readonly initAnswer: Buffer;
  readonly repeatable: Repeatable;
  readonly iv: { readonly at: number; readonly length: number } | null;
  /** Its Updates: the first, and how many. */
  part: Envelope | null;
  parts: number;
}

/** Ciphers that keep nothing of a part back for the last one. */
const givesAllBack = (repeatable: Repeatable): boolean =>
  'cipher' in repeatable && ['aes-ecb', 'aes-cbc'].includes(repeatable.cipher.algorithm);

/** More than any Init of a replay: a longer IV than GCM's longest, and what is around it. */
const longestInit = 256;
/** A replay that makes room for another after fewer uses than this was not worth learning. */
const fewUses = 4;
/** How many operations are not learned after such a replay. */
const rest = 1024;

/** The replays of one connection. */
export class ReplayCache {
  readonly #connection: number;
  readonly #repeater: Repeater | null;
  /** Operations that run now and may be learned as replays, by slot (session and kind). */
  readonly #running = new Map<number, RunningOperation>();
  /** Slots whose replays wait. */
  readonly #suspended = new Set<number>();
  /** Whether the addon knows any. */
  #taught = false;
  /** Calls under way that may change something. */
  #changing = 0;
  #resting = 0;

  constructor(connection: number, repeater: Repeater | null) {
    this.#connection = connection;
    this.#repeater = repeater;
  }

  /** Something that an Init reads may change. */
  forget(): void {
    this.#running.clear();
    this.#suspended.clear();
    if (this.#taught) this.#repeater?.forget(this.#connection);
    this.#taught = false;
  }

  /** Nothing is learned until the promise is settled; what was learned is forgotten then. */
  forgetUntil(over: Promise<unknown>): void {
    const done = (): void => {
      this.#changing--;
      this.forget();
    };
    this.#changing++;
    over.then(done, done);
  }

  /** An Init of a kind comes here. */
  suspend(session: number, kind: Kind): void {
    const slot = slotOf(session, kind);
    this.#running.delete(slot);
    if (!this.#taught || this.#suspended.has(slot)) return;
    this.#suspended.add(slot);
    this.#repeater?.suspend(this.#connection, session, kinds.indexOf(kind));
  }

  /** An Init of a kind was accepted here: its operation may become a replay. */
  began(session: number, kind: Kind, call: Envelope, message: Buffer, length: number, repeatable: Repeatable): void {
    if (this.#repeater === null || this.#changing > 0 || length > longestInit) return;
    if (this.#resting > 0) {
      this.#resting--;
      return;
    }
    const init = Buffer.from(message.subarray(0, length));
    const hasIv = 'cipher' in repeatable && 'iv' in repeatable.cipher;
    const iv = hasIv ? initialValue(call, init) : null;
    if (hasIv && iv === null) return;
    this.#running.set(slotOf(session, kind), { init, initAnswer: call.reply, repeatable, iv, part: null, parts: 0 });
  }

  /** A part of its data was taken. */
  continued(session: number, kind: Kind, call: Envelope): void {
    const running = this.#running.get(slotOf(session, kind));
    if (running === undefined) return;
    running.part ??= call;
    running.parts++;
  }

  /** An operation has ended well, in one piece or with its last part, and its slot is free. */
  ended(session: number, kind: Kind, call: Envelope, is: 'operation' | 'last'): void {
    const slot = slotOf(session, kind);
    const running = this.#running.get(slot);
    const waited = this.#suspended.delete(slot);
    this.#running.delete(slot);
    const steps = running === undefined ? null : stepsOf(running, session, call, is);
    if (running === undefined || steps === null) {
      if (waited) this.#repeater?.resume(this.#connection, session, kinds.indexOf(kind));
      return;
    }
    const { init, initAnswer, repeatable, iv } = running;
    const replay: Replay = {
      session,
      kind: kinds.indexOf(kind),
      init,
      ivAt: iv?.at ?? 0,
      ivLength: iv?.length ?? 0,
      initAnswer,
      ...repeatable,
      ...steps,
    };
    const uses = this.#repeater?.learn(this.#connection, replay) ?? -1;
    this.#taught = true;
    if (uses >= 0 && uses < fewUses) this.#resting = rest;
  }
}

/**
 * How messages of the calls that follow the Init begin, and their answers. Null when the addon does
 * not carry them out.
 */
const stepsOf = (
  { repeatable, part, parts }: RunningOperation,
  session: number,
  call: Envelope,
  is: 'operation' | 'last',
): ReplayInOnePiece | ReplayInParts | null => {
  if (is === 'operation') return { operation: startOf(call, session), operationAnswer: call.reply };
  if (part === null || parts !== 1 || !givesAllBack(repeatable)) return null;
  return {
    update: startOf(part, session),
    updateAnswer: part.reply,
    last: startOf(call, session),
    lastAnswer: call.reply,
  };
};

/** What a call of a session begins with. */
const startOf = ({ request }: Envelope, session: number): Buffer => {
  const start = Buffer.alloc(request.length + 8);
  start.set(request);
  start.writeBigUInt64BE(BigInt(session), request.length);
  return start;
};

const slotOf = (session: number, kind: Kind): number => session * kinds.length + kinds.indexOf(kind);

/** A connection, as far as its replays are concerned. */
interface Replaying {
  readonly replays: ReplayCache;
  readonly application: { session(handle: number): Operations } | null;
}

/** Follows the calls of all connections. */
export const replayWitness: Witness<Replaying> = {
  before({ replays }, { name }, input) {
    const role = roles[name];
    if (role === null) return;
    if (role.is === 'change') replays.forget();
    else if (role.is === 'init') replays.suspend(input.session as number, role.kind);
  },

  after({ replays, application }, call, input, message, length) {
    const role = roles[call.name];
    if (role === null || role.is === 'change') return;
    const handle = input.session as number;
    const running = application?.session(handle)[role.kind] ?? null;
    if (role.is === 'init') {
      const repeatable = running?.repeatable ?? null;
      if (repeatable !== null) replays.began(handle, role.kind, call, message, length, repeatable);
    } else if (role.is === 'part') {
      replays.continued(handle, role.kind, call);
    } else if (running === null) {
      replays.ended(handle, role.kind, call, role.is);
    }
  },

  waits({ replays }, { name }, over) {
    if (roles[name]?.is === 'change') replays.forgetUntil(over);
  },
};
