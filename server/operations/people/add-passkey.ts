// A new passkey, created by a user who is signed in.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { IdentityProvider, PasskeyCredential, Passkeys } from '../../ports/identity.ts';
import type { StoredFactor } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import { refuseOwnSecret } from '../access/provider-managed-users.ts';
import { checkName } from '../shared/names.ts';
import { type Factors, newFactor } from './factors.ts';
import { type PasskeyChallenges, readAnswer } from './passkey-challenges.ts';
import type { PasskeyOperations } from './people-operations.ts';
import { findSelf } from './profile.ts';
import { requireRecent } from './recent-sign-in.ts';
import type { Sessions } from './session-secrets.ts';

export type PasskeyPorts = Pick<Ports, 'store' | 'ring' | 'clock'> & {
  readonly passkeys: Passkeys;
  readonly provider: IdentityProvider | undefined;
};

export const requirePasskeys = (passkeys: Pick<Passkeys, 'available'>): void => {
  if (!passkeys.available())
    throw new ServiceError(
      'conflict',
      'passkeys require a host name, not an IP address, in the address of the service',
      {
        hint: 'set server.public_url or the first of server.public_names in dke.toml',
      },
    );
};

export const credentialOf = ({ data }: StoredFactor): PasskeyCredential => JSON.parse(data) as PasskeyCredential;

export const passkeysOf = async (
  { store }: Pick<PasskeyPorts, 'store'>,
  factors: Pick<Factors, 'usable'>,
  userId: string,
): Promise<readonly StoredFactor[]> =>
  factors.usable(await store.read.factors.list(userId)).filter(({ kind }) => kind === 'passkey');

export const createAddPasskey = (
  ports: PasskeyPorts,
  { keep, take }: PasskeyChallenges,
  sessions: Sessions,
  factors: Factors,
): Pick<PasskeyOperations, 'beginNew' | 'finishNew'> => {
  const { store, clock, passkeys, provider } = ports;
  return {
    beginNew: async (caller) => {
      requirePasskeys(passkeys);
      const user = await findSelf(store.read, caller);
      refuseOwnSecret(provider, user);
      await requireRecent(ports, caller);
      const known = await passkeysOf(ports, factors, user.id);
      return keep('passkey-registration', user.id, await passkeys.askForNew(user, known.map(credentialOf)));
    },

    finishNew: async (caller, name, answer, from) => {
      checkName(name);
      const user = await findSelf(store.read, caller);
      refuseOwnSecret(provider, user);
      await requireRecent(ports, caller);
      const read = readAnswer(answer);
      const asked = read !== undefined && (await take('passkey-registration', user.id, read.challenge));
      const made = asked ? await passkeys.verifyNew(answer, read.challenge) : null;
      if (made === null)
        throw new ServiceError('validation', 'the answer of the authenticator is not valid', { hint: 'start again' });
      const data = canonicalJson({ ...made.credential, transports: [...made.credential.transports] });
      const now = clock.now();
      const factor = newFactor(now, user.id, { kind: 'passkey', name, data, counter: made.counter, confirmedAt: now });
      const started = await store.write(async (tx) => {
        factors.requireRoom((await tx.factors.list(user.id)).filter(({ confirmedAt }) => confirmedAt !== null));
        await tx.factors.insert(factor);
        await factors.record(tx, 'second-factor.added', caller, user, factor);
        return factors.prove(tx, user, from, caller);
      });
      sessions.forget();
      return sessions.open(started, from);
    },
  };
};
