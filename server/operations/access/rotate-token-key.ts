// Rotation of the key that hashes API tokens. Tokens stay valid: each is stored under the new key
// at its next use. The former key is accepted until an administrator ends it; tokens that were not
// used by then end with it. After a compromise all tokens end at once.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { faultOfGrants, type Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, StoredToken } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';
import type { TokenOperations } from './access-operations.ts';
import { countAdministrators, isAdministrator, revokeTokens } from './manage-tokens.ts';

type RotationPorts = Pick<Ports, 'store' | 'ring' | 'clock'>;

const mostNamed = 5;
const tokenKey = { kind: 'service', id: 'token-key' } as const;

const isLive = ({ expiresAt, revokedAt, integrity }: StoredToken, now: number): boolean =>
  revokedAt === null && integrity === 'ok' && (expiresAt === null || expiresAt > now);

const namesOf = async (tx: Repositories, isChosen: (token: StoredToken) => boolean): Promise<readonly string[]> => {
  const names: string[] = [];
  for await (const token of each((window) => tx.tokens.list(everyTenant, window), byId))
    if (isChosen(token)) names.push(token.name);
  return names;
};

/**
 * 'conflict' when no administrator would remain; 'forbidden' for a token with roles that `own`
 * could not give.
 */
const endTokens = async (
  tx: Repositories,
  actor: Actor,
  own: readonly Grant[],
  now: number,
  isChosen: (token: StoredToken) => boolean,
): Promise<number> => {
  const ended = await revokeTokens(tx, actor, now, isChosen);
  for (const { id, name, grants } of ended)
    if (id !== actor.id && grants.length > 0 && faultOfGrants(grants, own) !== undefined)
      throw new ServiceError('forbidden', `the token ${name} has roles that you cannot give`, {
        hint: 'only a caller who could give all roles of a token can end it',
      });
  const administrators = ended.filter(isAdministrator);
  const lost = administrators.find(({ expiresAt }) => expiresAt === null) ?? administrators[0];
  if (lost !== undefined && (await countAdministrators(tx, lost, now)) === 0)
    throw new ServiceError(
      'conflict',
      'this would revoke the last administrator token, and no user is an administrator',
      {
        hint: 'first create a user with the role administrator; or run dke token rotate-key, then dke token end-former-key --force',
      },
    );
  return ended.length;
};

export const rotateTokenKey =
  ({ store, ring, clock }: RotationPorts): TokenOperations['rotateKey'] =>
  async (actor, own, { compromised = false }) => {
    const change = await store.write(async (tx) => {
      const now = clock.now();
      const isChosen = (token: StoredToken): boolean => isLive(token, now);
      await ring.rotateHashKey(tx, 'api-token-hash', now);
      const details = compromised
        ? { tokensEnded: await endTokens(tx, actor, own, now, isChosen), tokensLeft: 0 }
        : { tokensEnded: 0, tokensLeft: (await namesOf(tx, isChosen)).length };
      if (compromised) await ring.wipeFormerTokenKeys(tx);
      await tx.audit.append({
        kind: 'token.key-rotated',
        actor,
        tenantId: serviceTenantId,
        subject: tokenKey,
        details,
      });
      return details;
    });
    await ring.refreshHashKey(store, 'api-token-hash');
    return change;
  };

export const endFormerTokenKey =
  ({ store, ring, clock }: RotationPorts): TokenOperations['endFormerKey'] =>
  async (actor, own, { force = false }) => {
    const tokensEnded = await store.write(async (tx) => {
      const now = clock.now();
      await ring.followHashKey(tx, 'api-token-hash');
      const isChosen = (token: StoredToken): boolean => isLive(token, now) && ring.isFormerTokenHash(token.hash);
      const left = force ? [] : await namesOf(tx, isChosen);
      if (left.length > 0) {
        const names = [...left.slice(0, mostNamed), ...(left.length > mostNamed ? ['…'] : [])].join(', ');
        throw new ServiceError(
          'conflict',
          `API tokens that have not been used since the rotation: ${left.length} (${names})`,
          {
            hint: 'use or replace them first; to revoke them: dke token end-former-key --force',
          },
        );
      }
      const ended = await endTokens(tx, actor, own, now, isChosen);
      if ((await ring.wipeFormerTokenKeys(tx)) > 0)
        await tx.audit.append({
          kind: 'token.former-key-ended',
          actor,
          tenantId: serviceTenantId,
          subject: tokenKey,
          details: { tokensEnded: ended },
        });
      return ended;
    });
    await ring.refreshHashKey(store, 'api-token-hash');
    return { tokensEnded, tokensLeft: 0 };
  };
