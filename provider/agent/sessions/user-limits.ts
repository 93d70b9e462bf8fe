// What the processes of one local user have in this agent, and how much they may have: so that one
// user never uses up what others need. Connections, and the bytes of unfinished frames and unread
// answers, are counted by the frame server (addon/core/frames/frame_loop.h).
import type { Attribute, AttributeValue } from '../../schema/types.ts';
import { ToldError, tell } from '../causes.ts';

/** For all processes of one user together. */
export interface UserLimits {
  /** Connections that have called C_Initialize. */
  readonly connections: number;
  readonly sessions: number;
  /** Session objects. */
  readonly objects: number;
  /**
   * Bytes that frames, running operations and session objects hold, each of the two ledgers (here
   * and in the frame server) on its own.
   */
  readonly memory: number;
}

export const defaultLimits: UserLimits = { connections: 4096, sessions: 16_384, objects: 65_536, memory: 128 << 20 };

const ranges: Readonly<Record<keyof UserLimits, readonly [least: number, most: number]>> = {
  connections: [1, 1_000_000],
  sessions: [1, 1_000_000],
  objects: [1, 10_000_000],
  memory: [4, 4095],
};

/**
 * Reads `connections=4096,sessions=16384,objects=65536,memory=128` (MiB); what is not named has its
 * default. Throws Error.
 */
export const parseLimits = (text: string): UserLimits => {
  const limits = { ...defaultLimits };
  for (const part of text.split(',').filter((each) => each !== '')) {
    const [, name = '', digits = ''] = /^(\w+)=(\d{1,9})$/.exec(part.trim()) ?? [];
    const range = Object.hasOwn(ranges, name) ? ranges[name as keyof UserLimits] : undefined;
    if (range === undefined) {
      throw new Error(`user limits: "${part}" is unknown; write ${Object.keys(ranges).join('=N,')}=N (memory in MiB)`);
    }
    const value = Number(digits);
    if (value < range[0] || value > range[1])
      throw new Error(`user limits: ${name} must be ${range[0]} to ${range[1]}`);
    limits[name as keyof UserLimits] = name === 'memory' ? value << 20 : value;
  }
  return limits;
};

/** About what a row of a template takes in memory, in addition to the bytes of its value. */
const rowBytes = 128;

/** What the value of an attribute takes in memory, in bytes. */
export const valueBytes = (value: AttributeValue | null): number => {
  if (value === null || typeof value !== 'object') return 0;
  return value instanceof Uint8Array ? value.length : listBytes(value);
};

/** What a template, or a list of mechanisms, takes in memory, in bytes. */
export const listBytes = (rows: readonly (Attribute | number)[]): number =>
  rows.reduce<number>((sum, row) => sum + (typeof row === 'number' ? 8 : rowBytes + valueBytes(row.value)), 0);

type Counted = 'connections' | 'sessions' | 'objects' | 'memory' | 'keys';
const units: Readonly<Record<Counted, string>> = {
  connections: 'connections',
  sessions: 'sessions',
  objects: 'session objects',
  memory: 'bytes of memory',
  keys: 'bytes of session keys',
};

export class Account {
  readonly uid: number;
  readonly limits: Readonly<Record<Counted, number>>;
  readonly #counts: Record<Counted, number> = { connections: 0, sessions: 0, objects: 0, memory: 0, keys: 0 };

  constructor(uid: number, limits: Readonly<Record<Counted, number>>) {
    this.uid = uid;
    this.limits = limits;
  }

  /**
   * Takes `amount` more. Throws CKR_DEVICE_MEMORY, and takes nothing, when that is over the limit.
   */
  take(what: Counted, amount = 1): void {
    if (amount > 0 && this.#counts[what] + amount > this.limits[what]) throw this.exceeded(what);
    this.#counts[what] += amount;
  }

  give(what: Counted, amount = 1): void {
    this.#counts[what] -= amount;
  }

  /** Throws CKR_DEVICE_MEMORY unless there is room for more. */
  check(what: Counted): void {
    if (this.isFull(what)) throw this.exceeded(what);
  }

  isFull(what: Counted): boolean {
    return this.#counts[what] >= this.limits[what];
  }

  /** Counts without asking: for what is there already. */
  note(what: Counted, amount: number): void {
    this.#counts[what] += amount;
  }

  exceeded(what: Counted): ToldError {
    return new ToldError(tell('user-limit', { uid: this.uid, limit: this.limits[what], unit: units[what] }));
  }
}

/** One account for each user who has ever connected. */
export class Accounts {
  readonly #limits: Readonly<Record<Counted, number>>;
  readonly #byUser = new Map<number, Account>();

  /** `keys`: bytes of the key arena that one user may fill. */
  constructor(limits: UserLimits, keys: number) {
    this.#limits = { ...limits, keys };
  }

  of(uid: number): Account {
    const known = this.#byUser.get(uid);
    if (known !== undefined) return known;
    const account = new Account(uid, this.#limits);
    this.#byUser.set(uid, account);
    return account;
  }
}

/** An account without limits worth the name: for applications that no frame server comes before. */
export const ownAccount = (): Account => new Account(-1, { ...defaultLimits, keys: Number.MAX_SAFE_INTEGER });
