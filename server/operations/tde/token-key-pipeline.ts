// The only way to an open key of the token. A use is declared: which keys it takes, for what and
// with which mechanism, its own rules, its work, and what is recorded before an answer leaves. This
// runs it, always in the same order, so that no use can leave out a check:
//
// 1. `permits`: what the application may do at all (compatibility switches)
// 2. admission of each key: visible to the caller, unchanged, its owner's where it leaves, its
//    uses, its type for the mechanism, its
//    state and that of its vault; then the `checks` of this use. Refusals of policy are recorded
// 3. `prepare`: what takes long, before keys are open
// 4. all keys are open: membership, admission and `checks` again, because each may have changed;
//    then the `work`, in one step
// 5. `record`: with `commit`, in whose transaction every key is checked again: so no record of a
//    use, and none of its bytes, come
//    after the record of a destruction
//
// A soft-deleted master key continues from its sealed copy: its first use re-imports the vault copy
// (reimport-vault-copy.ts). A use costs no store access when its keys are in the directory's cache
// and nothing is recorded.

import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';
import type { Key, KeyUsage } from '../../domain/key.ts';
import { refusalOfState, refusalOfTokenKey, type TokenKeyRefusal, type TokenKeyUse } from '../../domain/key-policy.ts';
import { repeatMs } from '../../domain/tde.ts';
import type { TokenMechanism } from '../../domain/token-mechanisms.ts';
import type { WrapParameters } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { LoadedObject, OpenedObject } from '../../ports/working-memory.ts';
import { reimportVaultCopy } from './reimport-vault-copy.ts';
import { requireRsaSize } from './require-switch.ts';
import { inTurn, isSlowPrivateKey } from './slow-work.ts';
import type { TdeCaller } from './tde-operations.ts';
import { findVisible, isVisible, recordDenial, requireOwner, requireStillMember } from './visibility.ts';

export type UsePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'usage' | 'clock' | 'log'>;

interface Refusal {
  readonly code: ServiceErrorCode;
  readonly hint?: string;
  readonly message: string | ((use: TokenKeyUse, by: TokenMechanism | null) => string);
  /** What the audit log calls it. Absent: a mistake of the caller, not a matter of policy. */
  readonly recorded?: string;
}

const refusals = {
  'no-key': { code: 'key-usage', message: 'the object has no key that the service keeps' },
  'not-extractable': { code: 'forbidden', message: 'the key is not extractable', recorded: 'not extractable' },
  usage: { code: 'key-usage', message: (use) => `the key is not for ${use}` },
  'key-type': { code: 'key-usage', message: (_use, by) => `the key is of another type than ${by} takes` },
  mechanism: {
    code: 'key-usage',
    message: (_use, by) => `the key is not for ${by}: its maker has listed other mechanisms`,
    recorded: 'mechanism not allowed',
  },
  'wraps-sensitive-keys': { code: 'key-usage', message: 'a key that has wrapped sensitive keys does not decrypt' },
  unreadable: {
    code: 'key-usage',
    message: 'this master key does not decrypt, so it encrypts nothing',
    hint: 'run dke tde key allow-decryption; or set a new master key in the database',
    recorded: 'does not decrypt',
  },
  'key-disabled': { code: 'key-disabled', message: 'the key is disabled', recorded: 'key-disabled' },
  'key-not-found': { code: 'key-not-found', message: 'no such key', recorded: 'key-not-found' },
  'key-destroyed': { code: 'key-destroyed', message: 'the key is destroyed', recorded: 'key-destroyed' },
  vault: { code: 'key-disabled', message: 'the vault of the key is not enabled', recorded: 'vault not enabled' },
} satisfies Record<TokenKeyRefusal, Refusal>;

/** A key by its handle: used with a mechanism, or taken out. */
export type Wanted = { readonly handle: number } & (
  | { readonly use: KeyUsage; readonly by: TokenMechanism }
  | { readonly use: 'export'; readonly by: null }
);
/** An inquiry: no key is opened for it. */
type Asked = { readonly handle: number; readonly use: KeyUsage; readonly by: null };

type All<T> = readonly [T, ...T[]];

/** One run of a use. `admitted`: its keys in the order of `wants`, as they were admitted. */
export interface Running<Input> {
  readonly caller: TdeCaller;
  readonly input: Input;
  readonly admitted: All<LoadedObject>;
}

/** A transaction before which all keys of the use are checked again. */
export type Commit = (work: (tx: Repositories) => Promise<unknown>) => Promise<void>;

export interface TokenKeyUseRow<Input, Made, Answer = Made, Prepared = undefined> {
  readonly wants: (input: Input) => All<Wanted>;
  readonly permits?: (caller: TdeCaller, input: Input) => void;
  /** Beyond those of every use. Throws. `keys`: in the order of `wants`. */
  readonly checks?: (input: Input, keys: All<LoadedObject>) => void;
  /**
   * Whether the work takes a turn (slow-work.ts). `key`: the first one, before anything is checked.
   */
  readonly isSlow?: (input: Input, key: LoadedObject | undefined) => boolean;
  readonly prepare?: (running: Running<Input>) => Promise<Prepared>;
  /** Ends what `prepare` made, however the use ended. */
  readonly end?: (prepared: Prepared) => void;
  /** The keys are there until it returns: what it promises continues without them. */
  readonly work: (
    running: Running<Input>,
    keys: All<OpenedObject>,
    prepared: Prepared,
    isSlow: boolean,
  ) => Made | Promise<Made>;
  /** What leaves. Without it, what was made leaves unrecorded. */
  readonly record?: (running: Running<Input>, made: Made, commit: Commit) => Promise<Answer>;
}

/**
 * Thrown by `checks`: a refusal by policy of the key at this place of `wants`, which the audit log
 * calls `recorded`.
 */
export class Denied extends ServiceError {
  readonly at: number;
  readonly recorded: string;
  constructor(at: number, recorded: string, code: ServiceErrorCode, message: string, hint?: string) {
    super(code, message, hint === undefined ? {} : { hint });
    this.at = at;
    this.recorded = recorded;
  }
}

const throwRefusal = (refusal: TokenKeyRefusal, { use, by }: Wanted | Asked): never => {
  const { code, message, hint }: Refusal = refusals[refusal];
  const text = typeof message === 'string' ? message : message(use, by);
  throw new ServiceError(code, text, hint === undefined ? {} : { hint });
};

/** The object, checked for a use now. Throws what refuses it. Only its owner takes a key out. */
const admit = async (ports: UsePorts, caller: TdeCaller, wanted: Wanted | Asked): Promise<LoadedObject> => {
  const { use } = wanted;
  const loaded = await findVisible(ports, caller, wanted.handle, use);
  const { key, object } = loaded;
  if (use === 'export') await requireOwner(ports, caller, loaded, use);
  const refusal = refusalOfTokenKey(loaded, use, wanted.by);
  if (refusal !== null) {
    const { recorded }: Refusal = refusals[refusal];
    if (recorded !== undefined) await recordDenial(ports, caller, object, use, recorded);
    throwRefusal(refusal, wanted);
  }
  requireSize(caller, loaded, wanted);
  if (key?.state === 'soft-deleted' && key.reimportedAt === null) await reimportVaultCopy(ports, caller, key.id);
  return loaded;
};

/** Short private RSA keys need a switch; they may leave without one. */
const requireSize = (caller: TdeCaller, { object }: LoadedObject, { use, by }: Wanted | Asked): void => {
  if (use !== 'export' && by !== null && object.class === 'private-key' && object.algorithm === 'rsa')
    requireRsaSize(caller, { kind: 'rsa-private', bits: object.bits ?? 0 }, 'forbidden');
};

/** Whether the key may be used so, now: an inquiry. */
export const checkUse = async (ports: UsePorts, caller: TdeCaller, handle: number, use: KeyUsage): Promise<void> => {
  await admit(ports, caller, { handle, use, by: null });
};

/**
 * The uses of a visible object that `checkUse` would permit. Nothing is recorded, and nothing done:
 * where a use would, it is not among them.
 */
export const usesAdmitted = (loaded: LoadedObject): readonly KeyUsage[] => {
  const { object, key } = loaded;
  if (key === undefined) return [];
  if (object.integrity !== 'ok' || key.integrity !== 'ok') return [];
  if (key.state === 'soft-deleted' && key.reimportedAt === null) return [];
  return object.usages.filter((use) => refusalOfTokenKey(loaded, use, null) === null);
};

export const admittedUses = async (
  { directory }: Pick<UsePorts, 'directory'>,
  caller: TdeCaller,
  handle: number,
): Promise<readonly KeyUsage[]> => {
  const loaded = await directory.object(handle);
  return loaded === undefined || !isVisible(caller, loaded.object) ? [] : usesAdmitted(loaded);
};

const nothingOpen = (): ServiceError => new ServiceError('internal', 'a key was not opened');
/** `wants` names at least one key, and each step answers as many as it gets. */
const all = <T>([first, ...rest]: readonly T[]): All<T> => {
  if (first === undefined) throw nothingOpen();
  return [first, ...rest];
};

/**
 * Runs `then` with all keys open, in the order of `wanted`. Public keys, which have no secret, are
 * opened for this run.
 */
const withKeys = async <T>(
  { core, directory }: UsePorts,
  wanted: All<Wanted>,
  admitted: All<LoadedObject>,
  then: (keys: All<OpenedObject>) => T,
): Promise<{ readonly value: T } | undefined> => {
  const isPublic = admitted.map(({ key }) => key === undefined);
  if (!isPublic.includes(true)) {
    const handles = wanted.map(({ handle }) => handle);
    return directory.withObjectKeys(handles, (opened) => then(all(opened)));
  }
  const open: OpenedObject[] = [];
  try {
    for (const [at, { handle }] of wanted.entries()) {
      if (isPublic[at] !== true) continue;
      const loaded = await directory.object(handle);
      if (loaded === undefined) return undefined;
      open.push({ reference: core.importPublicKey(Buffer.from(loaded.object.publicKey ?? '', 'base64')), loaded });
    }
    const handles = wanted.filter((_, at) => isPublic[at] !== true).map(({ handle }) => handle);
    // The core takes a key that it works with later into that work.
    return await directory.withObjectKeys(handles, (opened) => {
      const [publics, secrets] = [open.values(), opened.values()];
      return then(all(isPublic.flatMap((each) => (each ? publics : secrets).next().value ?? [])));
    });
  } finally {
    for (const { reference } of open) core.release(reference);
  }
};

/**
 * Throws if the key may no longer be used; for one that leaves, also if that is no longer
 * permitted.
 */
const requireStillUsable = async (tx: Repositories, { object, key }: LoadedObject, use: TokenKeyUse): Promise<void> => {
  if (key === undefined) return;
  const { id, tenantId } = object;
  const now = await tx.keys.get(tenantId, id);
  const refusal = now === undefined ? 'key-not-found' : refusalOfState(now);
  if (refusal !== null) throw new ServiceError(refusal, refusals[refusal].message);
  if (use !== 'export') return;
  const left = await tx.objects.getById(id);
  if (left === undefined || !left.extractable || left.integrity !== 'ok')
    throw new ServiceError('forbidden', 'the key is not extractable');
  if (left.sensitive && !object.sensitive) throw becameSensitive();
};

const becameSensitive = (): ServiceError => new ServiceError('forbidden', 'the key became sensitive in the meantime');

/** Whether data may come to depend on the key through this use. */
const mayDepend = (use: TokenKeyUse): boolean => use !== 'decrypt' && use !== 'unwrap' && use !== 'verify';
/** Not used, as far as this process knows, and its creation may still be withdrawn. */
const isNew = ({ lastUsedAt, createdAt }: Key, now: number): boolean =>
  lastUsedAt === null && now - createdAt < repeatMs;

/** The declared use as an operation. */
export const tokenKeyUse =
  <Input, Made, Answer = Made, Prepared = undefined>(
    ports: UsePorts,
    row: TokenKeyUseRow<Input, Made, Answer, Prepared>,
  ): ((caller: TdeCaller, input: Input) => Promise<Answer>) =>
  async (caller, input) => {
    const { directory, usage, store, clock } = ports;
    row.permits?.(caller, input);
    const wanted = row.wants(input);
    const run = async (isSlow: boolean): Promise<readonly [Running<Input>, Made]> => {
      const found: LoadedObject[] = [];
      for (const each of wanted) found.push(await admit(ports, caller, each));
      const admitted = all(found);
      try {
        row.checks?.(input, admitted);
      } catch (error) {
        const denied = error instanceof Denied ? admitted[error.at] : undefined;
        if (error instanceof Denied && denied !== undefined)
          await recordDenial(ports, caller, denied.object, wanted[error.at]?.use ?? 'export', error.recorded);
        throw error;
      }
      const running = { caller, input, admitted };
      const prepared = (await row.prepare?.(running)) as Prepared;
      const count = (succeeded: boolean): void => {
        for (const [at, { object, key }] of admitted.entries())
          if (key !== undefined) usage.used(caller.application, object.id, wanted[at]?.use ?? 'export', succeeded);
      };
      try {
        const answer = await withKeys(ports, wanted, admitted, (keys) => {
          for (const [at, { loaded }] of keys.entries()) {
            const each = wanted[at];
            if (each === undefined) throw nothingOpen();
            requireStillMember(ports, caller, loaded);
            const refusal = refusalOfTokenKey(loaded, each.use, each.by);
            if (refusal !== null) throwRefusal(refusal, each);
            // The key was admitted while it was not sensitive, under fewer rules: it is not
            // exported now.
            if (each.use === 'export' && loaded.object.sensitive && admitted[at]?.object.sensitive === false)
              throw becameSensitive();
          }
          if (row.checks !== undefined) row.checks(input, all(keys.map(({ loaded }) => loaded)));
          return row.work(running, keys, prepared, isSlow);
        });
        if (answer === undefined) throwRefusal('key-destroyed', wanted[0]);
        const made = await (answer as { readonly value: Made | Promise<Made> }).value;
        for (const [at, { object, key }] of admitted.entries())
          if (key !== undefined && mayDepend(wanted[at]?.use ?? 'export') && isNew(key, clock.now()))
            await usage.first(object);
        count(true);
        return [running, made];
      } catch (error) {
        count(false);
        throw error;
      } finally {
        row.end?.(prepared);
      }
    };
    const isSlow = row.isSlow?.(input, await directory.object(wanted[0].handle)) === true;
    const [running, made] = await (isSlow ? inTurn('computation', caller, () => run(true)) : run(false));
    if (row.record === undefined) return made as unknown as Answer;
    return row.record(running, made, (work) =>
      store.write(async (tx) => {
        for (const [at, each] of running.admitted.entries())
          await requireStillUsable(tx, each, wanted[at]?.use ?? 'export');
        await work(tx);
      }),
    );
  };

/** The mechanism that wraps and unwraps so. */
export const wrapMechanism = (parameters: WrapParameters): TokenMechanism => {
  if (parameters.way === 'cipher') return parameters.cipher.algorithm;
  if (parameters.way === 'oaep') return 'rsa-oaep';
  return parameters.padded ? 'key-wrap-padded' : 'key-wrap';
};

/** A private RSA key whose operations take long. */
export const isSlowKey = (_input: unknown, key: LoadedObject | undefined): boolean =>
  key !== undefined && isSlowPrivateKey(key.object);
