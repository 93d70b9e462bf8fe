// Handlers of applications, and the pkcs11.toml that they are given.

import { otherWork } from '../../../base/next-turn.ts';
import type { Application, IssuedAccessGuid } from '../../../contract/api/tde-applications-routes.ts';
import type { IssuedAccessGuid as Issued, Operations } from '../../../operations/index.ts';
import { ValidationError } from '../api-problem.ts';
import { representAccessGuid, representApplication, representInstance, representMove } from '../represent.ts';
import type { Handlers } from './handler.ts';

const quote = (text: string): string => JSON.stringify(text);

/** pkcs11.toml, ready to use. */
const formatProviderConfig = ({ serverUrl, accessGuid }: Issued): string =>
  [
    '# Configuration of libdke_pkcs11.so. It holds a credential: mode 600, owner the database OS user.',
    '# DKE_PKCS11_CONF names this file in the environment that the instance starts from.',
    `server_url = ${quote(serverUrl)}`,
    `access_token = ${quote(accessGuid)}`,
    '',
  ].join('\n');

/** Where Oracle looks for a PKCS#11 library; exactly one may lie there. */
const libraryPath = '/opt/oracle/extapi/64/hsm/dke/1.0/libdke_pkcs11.so';

const representIssued = (issued: Issued): IssuedAccessGuid => ({
  record: representAccessGuid(issued.record),
  accessGuid: issued.accessGuid,
  serverUrl: issued.serverUrl,
  config: {
    server_url: issued.serverUrl,
    access_token: issued.accessGuid,
    pkcs11_toml: formatProviderConfig(issued),
    ca_pem: issued.authority,
    mode: '600',
    library: libraryPath,
  },
});

export const applicationsHandlers = ({ applications }: Operations): Handlers['applications'] => ({
  register: async ({ actor, body }) => {
    const issued = await applications.register(actor, body);
    return {
      id: issued.application.id,
      answer: { application: representApplication(issued.application), ...representIssued(issued) },
    };
  },
  list: async ({ actor, query }) => {
    const page = await applications.list(actor, query);
    const items: Application[] = [];
    for (const application of page.items) {
      items.push(representApplication(application));
      // Reading a certificate takes a tenth of a millisecond.
      if (application.callers.certificates.length > 0) await otherWork();
    }
    return { items, next: page.next };
  },
  get: async ({ actor, path }) => representApplication(await applications.get(actor, path.id)),
  enable: async ({ actor, path }) => representApplication(await applications.enable(actor, path.id)),
  disable: async ({ actor, path }) => representApplication(await applications.disable(actor, path.id)),
  rename: async ({ actor, path, body }) => representApplication(await applications.rename(actor, path.id, body)),
  setCompatibility: async ({ actor, path, body }) =>
    representApplication(await applications.setCompatibility(actor, path.id, body.switches)),
  setCallers: async ({ actor, path, body }) =>
    representApplication(await applications.setCallers(actor, path.id, body)),
  move: async ({ actor, path, query, body }) => {
    const application = await applications.get(actor, path.id);
    if (query.dryRun === true) {
      const move = await applications.planMove(actor, path.id, body.groupId);
      const plan = await applications.moveNeeds(actor, path.id, body.groupId);
      return { dryRun: true, application: representApplication(application), move: representMove(move), plan };
    }
    if (body.confirm !== application.name)
      throw new ValidationError([
        { path: 'confirm', message: body.confirm === undefined ? 'is missing' : "is not the application's name" },
      ]);
    const moved = await applications.move(actor, path.id, body.groupId);
    return {
      dryRun: false,
      application: representApplication(moved.application),
      move: representMove(moved.move),
    };
  },
  rotateAccessGuid: async ({ actor, path }) => {
    const issued = await applications.rotateAccessGuid(actor, path.id);
    return { id: issued.record.id, answer: representIssued(issued) };
  },
  accessGuids: async ({ actor, path }) => ({
    items: (await applications.accessGuids(actor, path.id)).map(representAccessGuid),
  }),
  removeAccessGuid: async ({ actor, path }) =>
    representAccessGuid(await applications.removeAccessGuid(actor, path.id, path.accessGuidId)),
  instances: async ({ actor, path }) => ({
    items: (await applications.instances(actor, path.id)).map(representInstance),
  }),
});
