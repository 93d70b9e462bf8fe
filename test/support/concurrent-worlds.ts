// Tenants for the test of concurrent operations (concurrent-operations.ts): each run of a pair has
// its own, with the things that both need.
import { inTenant, serviceActor, type TenantActor } from '../../server/domain/actor.ts';
import { totpStep } from '../../server/domain/one-time-password.ts';
import type { TdeCaller } from '../../server/operations/index.ts';
import type { StartedSession } from '../../server/operations/people/people-operations.ts';
import { dataObject, masterKey, type OpenedService } from './open-service.ts';
import { bytesOf, everything, goodPassword, originOf } from './people.ts';
import { type Answer, mustTo, sendTo } from './shared.ts';
import { codeOf } from './totp.ts';

/** One service, as its callers reach it. */
export interface TestNode {
  readonly opened: OpenedService;
  readonly base: string;
}

/** What can exist before an operation runs. */
export type Thing =
  | 'vault'
  | 'governedVault'
  | 'key'
  | 'approval'
  | 'renaming'
  | 'group'
  | 'otherGroup'
  | 'application'
  | 'accessGuid'
  | 'masterKey'
  | 'dataObject'
  | 'runbookRun'
  | 'endpoint'
  | 'credential'
  | 'keyStore'
  | 'notification'
  | 'token'
  | 'user'
  | 'invited'
  | 'factor'
  | 'session'
  | 'snapshot'
  | 'deletedSnapshot';

/** A tenant of its own, for one run of one pair. */
export interface World {
  readonly tenantId: string;
  /** Part of names that are unique in the service. */
  readonly mark: string;
  /** May do everything in the tenant. */
  readonly token: string;
  /** The token of an approver: the same rights, another identity. */
  readonly other: string;
  readonly actor: TenantActor;
  readonly ids: Partial<Record<Thing, string>>;
  /** Everything that is not an id. */
  readonly kept: {
    accessGuid?: string;
    handle?: number;
    dataHandle?: number;
    invitation?: string;
    secret?: string;
    /** The time step of the code that confirmed the one-time password. */
    firstStep?: number;
    session?: StartedSession;
    step?: string;
  };
}

export const send = ({ base }: TestNode, token: string, method: string, path: string, body?: object): Promise<Answer> =>
  sendTo(base, token, method, path, body);
const must = <T = { readonly id: string }>(
  { base }: TestNode,
  token: string,
  path: string,
  body: object = {},
  method = 'post',
): Promise<T> => mustTo<T>(base, token, method, path, body);

export const callerOn = (node: TestNode, world: World): Promise<TdeCaller> =>
  node.opened.operations.tde.authenticate({
    accessGuid: world.kept.accessGuid ?? '',
    appId: 'db',
    instance: { host: 'db', pid: 1, process: 'p', library: '1', agent: '1', osUser: 'o' },
    requestId: 'call-1',
    peer: null,
  });
export const idOf = ({ ids }: World, thing: Thing): string => {
  const id = ids[thing];
  if (id === undefined) throw new Error(`the row does not say that it needs ${thing}`);
  return id;
};
const tester = { ...serviceActor('test'), kind: 'administrator', id: 'test', name: 'test' } as const;
export const rule = { required: 1, actions: ['destroy'] };
const makeUser = async (node: TestNode, world: World, name: string, role: 'auditor' | 'key-manager') => {
  const { operations } = node.opened;
  const { user, invitation } = await operations.users.create(world.actor, everything, {
    name: `${name}-${world.mark}`,
    grants: [{ role, scope: null, tenantId: world.tenantId }],
  });
  return { id: user.id, invitation: invitation?.token ?? '' };
};

/** The creation of each resource, and the resources that it needs. */
export const makers: {
  readonly [T in Thing]: {
    readonly needs?: readonly Thing[];
    readonly make: (node: TestNode, world: World) => Promise<string>;
  };
} = {
  vault: { make: async (n, w) => (await must(n, w.token, '/api/vaults', { name: 'vault' })).id },
  governedVault: { make: async (n, w) => (await must(n, w.token, '/api/vaults', { name: 'governed' })).id },
  key: {
    needs: ['vault'],
    make: async (n, w) => (await must(n, w.token, '/api/keys', { name: 'key', vaultId: idOf(w, 'vault') })).id,
  },
  approval: {
    needs: ['governedVault'],
    make: async (n, w) => {
      const vaultId = idOf(w, 'governedVault');
      const { id } = await must(n, w.token, '/api/keys', { name: 'held', vaultId });
      await must(n, w.token, `/api/vaults/${vaultId}/dual-control`, rule, 'put');
      return (await must(n, w.token, `/api/keys/${id}`, {}, 'delete')).id;
    },
  },
  renaming: {
    needs: ['governedVault'],
    make: async (n, w) => {
      const place = `/api/vaults/${idOf(w, 'governedVault')}`;
      await must(n, w.token, `${place}/dual-control`, rule, 'put');
      return (await must(n, w.token, `${place}/name`, { name: `new-${w.mark}` }, 'put')).id;
    },
  },
  group: { make: async (n, w) => (await must(n, w.token, '/api/tde/groups', { name: 'group' })).id },
  otherGroup: { make: async (n, w) => (await must(n, w.token, '/api/tde/groups', { name: 'other' })).id },
  application: {
    needs: ['group'],
    make: async (n, w) => {
      const made = await must<{ application: { id: string }; record: { id: string }; accessGuid: string }>(
        n,
        w.token,
        '/api/tde/applications',
        { name: 'db', groupId: idOf(w, 'group') },
      );
      w.kept.accessGuid = made.accessGuid;
      return made.application.id;
    },
  },
  accessGuid: {
    needs: ['application'],
    make: async (n, w) => {
      const path = `/api/tde/applications/${idOf(w, 'application')}/access-guids`;
      return (await must<{ record: { id: string } }>(n, w.token, path)).record.id;
    },
  },
  masterKey: {
    needs: ['application'],
    make: async (n, w) => {
      const made = await n.opened.operations.tde.generateKey(await callerOn(n, w), {
        ...masterKey('MK'),
        modifiable: true,
        destroyable: true,
      });
      w.kept.handle = made.handle;
      return made.id;
    },
  },
  dataObject: {
    needs: ['application'],
    make: async (n, w) => {
      const made = await n.opened.operations.tde.createObject(
        await callerOn(n, w),
        dataObject('data'),
        Buffer.from('x'),
      );
      w.kept.dataHandle = made.handle;
      return made.id;
    },
  },
  runbookRun: {
    needs: ['application'],
    make: async (n, w) => {
      const path = `/api/tde/applications/${idOf(w, 'application')}/runbook-runs`;
      const run = await must<{ id: string; steps: { id: string }[] }>(n, w.token, path, { runbook: 'rotate' });
      w.kept.step = run.steps[0]?.id ?? '';
      return run.id;
    },
  },
  endpoint: {
    needs: ['key'],
    make: async (n, w) => {
      const body = { name: 'cloud', vaultId: idOf(w, 'vault'), keyId: idOf(w, 'key') };
      return (await must(n, w.token, '/api/endpoints', body)).id;
    },
  },
  credential: {
    needs: ['endpoint'],
    make: async (n, w) => {
      const { credential, secretAccessKey } = await n.opened.operations.endpoints.addCredential(
        w.actor,
        idOf(w, 'endpoint'),
      );
      secretAccessKey.fill(0);
      return credential.id;
    },
  },
  keyStore: {
    needs: ['endpoint'],
    make: async (n, w) => {
      const body = {
        name: 'store',
        customKeyStoreId: 'cks-0123456789abcdef9',
        region: 'eu-central-1',
        endpointId: idOf(w, 'endpoint'),
      };
      return (await must(n, w.token, '/api/external-key-stores', body)).id;
    },
  },
  notification: {
    needs: ['approval'],
    make: async (n, w) => {
      await n.opened.service.checkNotifications();
      const path = '/api/notifications';
      const { items } = JSON.parse((await send(n, w.token, 'get', path)).text) as { items: { id: string }[] };
      return items[0]?.id ?? '';
    },
  },
  token: {
    make: async (n, w) => {
      const body = { name: 'target', grants: [{ role: 'auditor', scope: null }] };
      return (await must<{ record: { id: string } }>(n, w.token, '/api/tokens', body)).record.id;
    },
  },
  user: {
    make: async (n, w) => {
      const { id, invitation } = await makeUser(n, w, 'person', 'auditor');
      w.kept.session = await n.opened.operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf());
      return id;
    },
  },
  session: { needs: ['user'], make: async (_, w) => w.kept.session?.sessionId ?? '' },
  factor: {
    needs: ['session'],
    make: async (n, w) => {
      const { factors, signIn } = n.opened.operations;
      if (w.kept.session === undefined) throw new Error('no user is signed in');
      const { id, secret } = await factors.begin(w.kept.session, 'phone');
      w.kept.secret = secret.toString();
      const now = Date.now();
      w.kept.firstStep = totpStep(now) - 1;
      await factors.confirm(w.kept.session, id, bytesOf(codeOf(w.kept.secret, -1, now)), originOf());
      // A session that waits for its second factor.
      w.kept.session = await signIn.byPassword(`person-${w.mark}`, bytesOf(goodPassword), originOf());
      return id;
    },
  },
  invited: {
    make: async (n, w) => {
      const { id, invitation } = await makeUser(n, w, 'invited', 'auditor');
      w.kept.invitation = invitation;
      return id;
    },
  },
  snapshot: { make: async (n, w) => (await must(n, w.token, '/api/snapshots')).id },
  deletedSnapshot: {
    make: async (n, w) => {
      const { id } = await must(n, w.token, '/api/snapshots');
      await must(n, w.token, `/api/snapshots/${id}`, {}, 'delete');
      return id;
    },
  },
};

let worlds = 0;
export const makeWorld = async (node: TestNode, things: readonly Thing[]): Promise<World> => {
  worlds += 1;
  const mark = `w${worlds}x`;
  const { operations } = node.opened;

  const tenant = await operations.tenants.create(inTenant(tester, (await operations.tenants.default()).id), {
    name: `tenant-${mark}`,
  });
  const actor = inTenant(tester, tenant.id);
  const grants = [{ role: 'administrator', scope: null }] as const;
  const { token } = await operations.tokens.create(actor, 'the service', { name: 'all', grants });
  const { token: other } = await operations.tokens.create(actor, 'the service', { name: 'approver', grants });
  const world: World = { tenantId: tenant.id, mark, token, other, actor, ids: {}, kept: {} };
  for (const thing of things) world.ids[thing] = await makers[thing].make(node, world);
  return world;
};
