// `dke login` through the browser (RFC 8628). A command asks and gets two codes: one that it keeps,
// 256 random bits, and one that a person types, eight letters. A person who is signed in decides by
// the second; the command takes the answer by the first, once. Both are rows of sign-ins under way
// (attempts.ts): found by a keyed hash, under a code, on every node, also after a restart.
//
// Who chooses what: strangers choose the name of the host and the roles that they ask for, which
// are shown as claims and give nothing. The person chooses roles and hours, of their own only. What
// proves it: the hash of the code, the session of the person with its sign-in of the last minutes,
// and the user as they are when the token is issued. The approval ends with that session, so that a
// change of roles, a new password or a sign-out takes it back. A lost answer is a token that no one
// has; it ends with its hours. How fast a command asks is kept in the memory of each node: after a
// restart, or at another node, it begins with the first interval.

import { canonicalJson } from '../../base/bytes.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { createOriginRates, pollRate } from '../../base/origin-rates.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { effectiveGrants, type Grant } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { StoredAttempt, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { looksLikeBearer } from '../access/bearer.ts';
import { completeGrants, nameGrant } from '../access/grants.ts';
import { createToken, findTokenByValue } from '../access/manage-tokens.ts';
import { refuseLongToken } from '../access/provider-managed-users.ts';
import { about, aboutService, recordEvent } from '../shared/record-event.ts';
import type { Attempts } from './attempts.ts';
import type {
  DeviceAnswer,
  DeviceRequest,
  DeviceSignInOperations,
  SessionCaller,
  SignInOrigin,
} from './people-operations.ts';
import { findSelf } from './profile.ts';
import { requireRecent } from './recent-sign-in.ts';
import { type Sessions, userActor } from './session-secrets.ts';
import { unknownPerson } from './sign-in.ts';

const holdsMs = 10 * 60_000;
const hour = 3_600_000;
const firstIntervalSeconds = 2;
/** RFC 8628, section 3.5. */
const slowerSeconds = 5;
/**
 * Most pending sign-ins of the whole service: a flood of requests cannot fill the table, and
 * guessing a code stays hopeless.
 */
export const mostPending = 1_000;

/**
 * Letters without vowels, so that no word comes about, and without those that look alike (RFC 8628,
 * section 6.1).
 */
const letters = 'BCDFGHJKLMNPQRSTVWXZ';
const userCodeLength = 8;

/** In the row of the code that the person types. */
interface Asked extends Omit<DeviceRequest, 'expiresAt'> {
  readonly id: string;
  readonly deviceHash: string;
}
interface Approved {
  readonly state: 'approved';
  readonly id: string;
  readonly host: string;
  readonly sessionId: string;
  readonly hours: number;
  readonly grants: readonly Grant[];
}
/** In the row of the code that the command has. */
type Decision = { readonly state: 'pending' | 'refused'; readonly id: string; readonly host: string } | Approved;

type DevicePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'identity'> & {
  readonly provider: IdentityProvider | undefined;
};

const normalized = (userCode: string): string => userCode.toUpperCase().replaceAll(/[^A-Z]/g, '');
const textOfDevice = (deviceCode: string): string => `device\0${deviceCode}`;
const textOfUser = (userCode: string): string => `user-code\0${normalized(userCode)}`;
const askedOf = (attempt: StoredAttempt | undefined): Asked | undefined =>
  attempt?.kind === 'user-code' ? (JSON.parse(attempt.data) as Asked) : undefined;
const decisionOf = (attempt: StoredAttempt | undefined): Decision | undefined =>
  attempt?.kind === 'device-code' ? (JSON.parse(attempt.data) as Decision) : undefined;

/** One text for each code that cannot be decided: unknown, expired, or decided before. */
const noSuchCode = (): ServiceError =>
  new ServiceError('not-found', 'this code is not valid', {
    hint: 'compare it with the one that dke login shows; a code is valid for ten minutes and for one decision',
  });
/** Ends the unit of work that issues a token: the approval is no longer valid. */
class ApprovalLost extends Error {}

/** When commands asked last: those of the latest requests. */
const createPace = ({ clock }: Pick<Ports, 'clock'>) => {
  const asked = new Map<string, { at: number; intervalSeconds: number }>();
  return {
    forget: (hash: string): void => void asked.delete(hash),
    /** Whether this comes too early, and the interval from now on. */
    note: (hash: string): { readonly early: boolean; readonly intervalSeconds: number } => {
      const now = clock.monotonic();
      const before = asked.get(hash);
      // Half of it: the way of a question takes sometimes more, sometimes less.
      const early = before !== undefined && now - before.at < before.intervalSeconds * 500;
      const intervalSeconds = (before?.intervalSeconds ?? firstIntervalSeconds) + (early ? slowerSeconds : 0);
      asked.delete(hash);
      asked.set(hash, { at: now, intervalSeconds });
      const [oldest] = asked.keys();
      if (asked.size > mostPending && oldest !== undefined) asked.delete(oldest);
      return { early, intervalSeconds };
    },
  };
};

const createCodes = (core: DevicePorts['core']) => ({
  device: (): string => {
    const bytes = Buffer.alloc(32);
    core.random(bytes);
    const code = bytes.toString('base64url');
    core.wipe(bytes);
    return code;
  },
  user: (): string => {
    const byte = Buffer.alloc(1);
    let code = '';
    while (code.length < userCodeLength) {
      core.random(byte);
      // 240 is a multiple of 20: each letter is as likely as another.
      if ((byte[0] ?? 255) < 240) code += letters[(byte[0] ?? 0) % letters.length];
    }
    return `${code.slice(0, 4)}-${code.slice(4)}`;
  },
});

const refused = (
  tx: Repositories,
  from: Pick<SignInOrigin, 'requestId' | 'peer'> & Partial<SignInOrigin>,
  user: Pick<StoredUser, 'id' | 'name' | 'tenantId'> | undefined,
  details: { readonly request?: string; readonly host?: string; readonly reason: string },
): Promise<unknown> =>
  recordEvent(
    tx,
    'device-sign-in.refused',
    user === undefined ? unknownPerson(from) : userActor(user, from),
    user === undefined ? aboutService('sign-in') : about('user', user),
    { ...details, ...(user === undefined ? {} : { name: user.name }) },
  );

const actorOf = (user: StoredUser, caller: Pick<SessionCaller, 'actor'>): TenantActor => ({
  ...caller.actor,
  tenantId: user.tenantId ?? serviceTenantId,
  reach: user.tenantId ?? everyTenant,
});

/** What the person does, by the code that the command shows. */
const createDecisions = (
  ports: DevicePorts,
  attempts: Attempts,
  sessions: Sessions,
): Pick<DeviceSignInOperations, 'find' | 'approve' | 'refuse'> => {
  const { store, clock, provider } = ports;
  /**
   * Takes both rows of a request that waits, and leaves the decision in the place of the second.
   */
  const decide = async (tx: Repositories, userCode: string, decision: (asked: Asked) => Decision) => {
    const attempt = await attempts.take(tx, textOfUser(userCode));
    const asked = askedOf(attempt);
    if (attempt === undefined || asked === undefined) return undefined;
    const { deviceHash, ...shown } = asked;
    if (decisionOf(await attempts.takeHash(tx, deviceHash))?.state !== 'pending') return undefined;
    const { expiresAt } = attempt;
    await attempts.keep(tx, {
      kind: 'device-code',
      userId: null,
      hash: deviceHash,
      data: canonicalJson(decision(asked)),
      holdsMs: expiresAt - clock.now(),
    });
    return { ...shown, expiresAt };
  };
  /** The audit log has who tried which way; not the code, which may be that of another request. */
  const missed = async (user: StoredUser, from: SignInOrigin): Promise<never> => {
    await store.write((tx) => refused(tx, from, user, { reason: 'unknown-code' }));
    throw noSuchCode();
  };

  return {
    find: async (caller, userCode, from) => {
      const user = await findSelf(store.read, caller);
      const attempt = await attempts.find(store.read, textOfUser(userCode));
      const asked = askedOf(attempt);
      if (attempt === undefined || asked === undefined) return missed(user, from);
      const { deviceHash: _, ...shown } = asked;
      return { ...shown, expiresAt: attempt.expiresAt };
    },

    approve: async (caller, userCode, { hours, grants: chosen }, from) => {
      const user = await findSelf(store.read, caller);
      await requireRecent(ports, caller);
      refuseLongToken(provider, user, hours * hour);
      const grants = chosen === undefined ? caller.grants : completeGrants(actorOf(user, caller), chosen);
      if (grants.length === 0 || effectiveGrants(grants, caller.grants).length < grants.length)
        throw new ServiceError('validation', 'a command cannot have more permissions than the person', {
          hint: 'GET /api/session shows your roles',
        });
      const decided = await store.write(async (tx) => {
        await sessions.requireLive(tx, caller.sessionId);
        const shown = await decide(tx, userCode, ({ id, host }) => ({
          ...{ state: 'approved', id, host, sessionId: caller.sessionId, hours },
          grants: grants.map(({ role, scope, tenantId }) => ({ role, scope: scope && { ...scope }, tenantId })),
        }));
        if (shown === undefined) return undefined;
        await recordEvent(tx, 'device-sign-in.approved', caller.actor, about('user', user), {
          ...{ request: shown.id, name: user.name, host: shown.host, peer: shown.peer },
          ...{ roles: grants.map(nameGrant), hours },
        });
        return shown;
      });
      return decided ?? missed(user, from);
    },

    refuse: async (caller, userCode, from) => {
      const user = await findSelf(store.read, caller);
      const decided = await store.write(async (tx) => {
        const shown = await decide(tx, userCode, ({ id, host }) => ({ state: 'refused', id, host }));
        if (shown !== undefined)
          await refused(tx, from, user, { request: shown.id, host: shown.host, reason: 'by-person' });
        return shown;
      });
      return decided ?? missed(user, from);
    },
  };
};

/**
 * What issues the token of an approval in the unit of work that takes it. It throws `ApprovalLost`.
 */
const createIssue =
  (ports: DevicePorts, attempts: Attempts) => async (hash: string, approved: Approved, from: SignInOrigin) => {
    const { store, clock } = ports;
    const { id, host, hours, grants, sessionId } = approved;
    const session = await store.read.sessions.get(everyTenant, sessionId);
    const user = session && (await store.read.users.get(everyTenant, session.holder.id));
    if (user === undefined) throw new ApprovalLost();
    const expiresAt = clock.now() + hours * hour;
    const actor = userActor(user, from);
    const check = async (tx: Repositories): Promise<void> => {
      const taken = decisionOf(await attempts.takeHash(tx, hash));
      if (taken?.state !== 'approved' || taken.id !== id) throw noSuchCode();
      // The token has the id of the request: a row that was put back gives no second one.
      if ((await tx.tokens.get(everyTenant, id)) !== undefined) throw noSuchCode();
      const live = await tx.sessions.get(everyTenant, sessionId);
      const now = await tx.users.get(everyTenant, user.id);
      const holds =
        live?.integrity === 'ok' &&
        live.holder.kind === 'user' &&
        live.holder.id === user.id &&
        live.expiresAt > clock.now() &&
        now?.state === 'active' &&
        now.integrity === 'ok' &&
        effectiveGrants(grants, now.grants).length === grants.length;
      if (!holds) throw new ApprovalLost();
      await recordEvent(tx, 'device-sign-in.issued', actor, about('user', user), {
        request: id,
        name: user.name,
        host,
        expiresAt: toRfc3339(expiresAt),
      });
    };
    // The name tells the person's commands apart, also two of one host.
    const name = `dke login on ${host} ${id.slice(-12)}`;
    const { record, token } = await createToken(ports, check, id)(actorOf(user, { actor }), user.grants, {
      name,
      expiresAt,
      grants,
      ownerId: user.id,
    });
    return { record, token, user: user.name };
  };

export const createDeviceSignIn = (
  ports: DevicePorts,
  attempts: Attempts,
  sessions: Sessions,
): DeviceSignInOperations => {
  const { store, core, clock, identity } = ports;
  const pace = createPace(ports);
  const codes = createCodes(core);
  const issue = createIssue(ports, attempts);

  return {
    ...createOriginRates(clock, pollRate),
    ...createDecisions(ports, attempts, sessions),

    start: async ({ host, roles = null, hours = 8 }, from) => {
      const now = clock.now();
      const deviceCode = codes.device();
      const asked = {
        ...{ id: newId(now), host, peer: from.peer, requestedAt: now, roles, hours },
        deviceHash: attempts.hashOf(textOfDevice(deviceCode)),
      };
      const userCode = await store.write(async (tx) => {
        if ((await tx.attempts.count('user-code', clock.now())) >= mostPending)
          throw new LimitRefused('sign-ins', 'too many sign-ins wait for a browser', {
            hint: 'try again in a few minutes, or sign in with dke login USER',
            retryAfterSeconds: 60,
          });
        let code = codes.user();
        while ((await tx.attempts.get(attempts.hashOf(textOfUser(code)))) !== undefined) code = codes.user();
        const pending = canonicalJson({ state: 'pending', id: asked.id, host });
        await attempts.keep(tx, {
          kind: 'device-code',
          userId: null,
          hash: asked.deviceHash,
          data: pending,
          holdsMs,
        });
        const data = canonicalJson(asked);
        await attempts.keep(tx, { kind: 'user-code', userId: null, value: textOfUser(code), data, holdsMs });
        await recordEvent(tx, 'device-sign-in.requested', unknownPerson(from), aboutService('sign-in'), {
          request: asked.id,
          host,
          roles,
          hours,
        });
        return code;
      });
      const url = `${identity.publicUrl()}/device`;
      return {
        ...{ deviceCode, userCode, url, completeUrl: `${url}#${userCode}` },
        ...{ expiresAt: now + holdsMs, intervalSeconds: firstIntervalSeconds },
      };
    },

    poll: async (deviceCode, from): Promise<DeviceAnswer> => {
      const hash = attempts.hashOf(textOfDevice(deviceCode));
      const found = decisionOf(await attempts.find(store.read, textOfDevice(deviceCode)));
      const ended = (state: 'refused' | 'expired'): DeviceAnswer => {
        pace.forget(hash);
        return { state, intervalSeconds: firstIntervalSeconds, issued: null };
      };
      if (found === undefined) return ended('expired');
      if (found.state === 'pending') {
        const { early, intervalSeconds } = pace.note(hash);
        return { state: early ? 'slow-down' : 'pending', intervalSeconds, issued: null };
      }
      if (found.state !== 'approved') {
        await store.write((tx) => attempts.takeHash(tx, hash), { durable: false });
        return ended('refused');
      }
      try {
        const issued = await issue(hash, found, from);
        pace.forget(hash);
        return { state: 'issued', intervalSeconds: firstIntervalSeconds, issued };
      } catch (error) {
        // Another question has taken it.
        if (error instanceof ServiceError && error.code === 'not-found') return ended('expired');
        if (!(error instanceof ApprovalLost)) throw error;
        await store.write(async (tx) => {
          if (decisionOf(await attempts.takeHash(tx, hash)) === undefined) return;
          await refused(tx, from, undefined, { request: found.id, host: found.host, reason: 'approval-ended' });
        });
        return ended('refused');
      }
    },

    end: async (token, from) => {
      const found = looksLikeBearer('api-token', token) ? await findTokenByValue(ports, 'api-token', token) : undefined;
      if (found === undefined || found.ownerId === null) return;
      await store.write(async (tx) => {
        const now = await tx.tokens.get(everyTenant, found.id);
        const owner = found.ownerId === null ? undefined : await tx.users.get(everyTenant, found.ownerId);
        if (now === undefined || owner === undefined || now.revokedAt !== null || now.integrity !== 'ok') return;
        await tx.tokens.update({ ...now, revokedAt: clock.now() });
        await recordEvent(tx, 'token.revoked', userActor(owner, from), about('token', now), { name: now.name });
      });
    },
  };
};
