// `dke tde`: groups, applications and master keys of databases.

import type { Command } from 'commander';
import { command } from '../../base/command-line.ts';
import { compatibilitySwitches } from '../../base/compatibility-switches.ts';
import { waysBack } from '../../base/way-back.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { BlastRadius } from '../../contract/api/master-keys-routes.ts';
import type { Application, IssuedAccessGuid, MovedApplication } from '../../contract/api/tde-applications-routes.ts';
import type { Caller, SecretAnswer } from '../service/caller.ts';
import { addNoun, type Noun } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readTextFile } from '../terminal/secret-files.ts';
import { type BundleOptions, bundleFlags, checkBundle, makeBundle, tomlOf } from './bundle.ts';
import { copyLines, describeCopies } from './key-copies.ts';

const isSwitch = (name: string): boolean => compatibilitySwitches.some((each) => each === name);

const { tdeGroups, applications, masterKeys, keys } = operations;

const applicationColumns = { ID: 'id', NAME: 'name', 'APP ID': 'appId', STATE: 'state', CREATED: 'createdAt' } as const;

const addGroup = (tde: Noun): void => {
  const noun = tde.noun('group', 'groups: databases that may share master keys');
  noun.row(tdeGroups.create, 'create <name>', 'Creates a group, and the vault of its master keys.');
  noun.row(tdeGroups.list, 'list', 'Lists groups.', { columns: { ID: 'id', NAME: 'name', CREATED: 'createdAt' } });
  noun.row(tdeGroups.get, 'show <group>', 'Shows a group, by id or name.');
  noun.row(
    tdeGroups.rename,
    'rename <group> <name>',
    'Renames a group, and its vault with it. If its vault is under dual control, others must approve.',
    {
      options: { '--dry-run': 'show the required approvals, change nothing' },
      value: (answer) => answer.plan ?? answer,
    },
  );
  noun.row(applications.list, 'members <group>', 'Lists the applications that share master keys in a group.', {
    columns: applicationColumns,
  });
};

const issuedAnswer = async (
  caller: Caller,
  shown: object,
  application: string,
  issued: IssuedAccessGuid,
  options: BundleOptions,
): Promise<SecretAnswer> => ({
  shown,
  secret: { accessGuid: issued.accessGuid, serverUrl: issued.serverUrl, config: issued.config },
  file: options.bundle === undefined ? tomlOf(issued, options) : await makeBundle(caller, application, issued, options),
});
/**
 * Refuses options of a bundle that do not fit, before a command requests the access_guid that it
 * shows.
 */
const noBundleFault = (_: Caller, options: BundleOptions): Record<never, never> => {
  checkBundle(options);
  return {};
};

const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;
/** A client's own certificate is the first one of its file. */
const readCertificate = (path: string): string => {
  const [pem] = pemBlock.exec(readTextFile(path)) ?? [];
  if (pem === undefined) throw new CommandError('config', `${path} has no certificate in PEM`);
  return pem;
};

const addCallers = (noun: Noun): void => {
  noun.act(
    'callers <application>',
    'Shows or changes where the credentials of an application may be used from: networks (CIDR) and client certificates. ' +
      'An empty list allows any caller. Changes apply to the next request.',
    {
      '--add-network <network...>': 'allow an address or a network such as 192.0.2.0/24',
      '--remove-network <network...>': 'remove an allowed entry; all: remove every entry',
      '--add-certificate <file...>': 'allow the client certificate in a PEM file',
      '--remove-certificate <fingerprint...>': 'remove an allowed entry; all: remove every entry',
    },
    async ({ call, change, output }, options, id = '') => {
      const path = { id };
      if (Object.keys(options).length === 0) return output.record(await call(applications.get, { path }));
      const { addNetwork = [], removeNetwork = [], addCertificate = [], removeCertificate = [] } = options;
      const added = addCertificate.map(readCertificate);
      output.record(
        await change(applications.get, applications.setCallers, path, ({ name, callers }: Application) => {
          const isKept = (removed: readonly string[]) => (entry: string) =>
            !removed.includes(entry) && !removed.includes('all');
          const entries = [...callers.networks, ...callers.certificates.map(({ fingerprint }) => fingerprint), 'all'];
          const unknown = [...removeNetwork, ...removeCertificate].filter((entry) => !entries.includes(entry));
          if (unknown.length > 0)
            throw new CommandError('not-found', `not among the allowed callers: ${unknown.join(', ')}`, {
              hint: command`dke tde app callers ${name}`,
            });
          const certificates = callers.certificates.filter(({ fingerprint }) => isKept(removeCertificate)(fingerprint));
          return {
            networks: [...callers.networks.filter(isKept(removeNetwork)), ...addNetwork],
            certificates: [...certificates.map(({ pem }) => pem), ...added],
          };
        }),
      );
    },
  );
  noun.act(
    'compatibility <application>',
    'Permits weaker cryptography that programs of an application depend on, or withdraws it. Shows what is permitted. ' +
      `Switches: ${compatibilitySwitches.join(', ')}.`,
    { '--permit <switch...>': 'switch on', '--withdraw <switch...>': 'switch off' },
    async ({ call, change, output }, { permit = [], withdraw = [] }, id = '') => {
      const path = { id };
      const named = [...permit, ...withdraw].filter((name) => !isSwitch(name));
      if (named.length > 0)
        throw new CommandError('config', `no such switch: ${named.join(', ')}`, {
          hint: `the switches are ${compatibilitySwitches.join(', ')}`,
        });
      if (permit.length + withdraw.length === 0) return output.record(await call(applications.get, { path }));
      const edit = ({ compatibility }: Application) => ({
        switches: compatibilitySwitches.filter(
          (name) => (permit.includes(name) || compatibility.includes(name)) && !withdraw.includes(name),
        ),
      });
      output.record(await change(applications.get, applications.setCompatibility, path, edit));
    },
  );
};

const describeMove = ({ application, move }: MovedApplication): string => {
  const names = (all: readonly { readonly name: string }[]): string => all.map(({ name }) => name).join(', ') || 'none';
  const taken =
    move.conflictingLabels.length === 0
      ? ''
      : ` It cannot be moved: ${move.to.name} has keys labelled ${move.conflictingLabels.join(', ')}.`;
  return (
    `${application.name} moves from ${move.from.name} to ${move.to.name} with ${move.keys} keys and ${move.objects} other objects. ` +
    `It loses ${move.keysLost} keys of ${names(move.leaves)}, which lose access to its keys. Their databases that still need such a key can no longer read their data. ` +
    `After that, it shares keys with ${names(move.joins)}.${taken}`
  );
};

const addApplication = (tde: Noun): void => {
  const noun = tde.noun('app', 'applications: what a database instance is bound to');

  noun.row(applications.register, 'register <name>', 'Registers an application. The access_guid is shown only once.', {
    options: {
      ...bundleFlags,
      '--group <group>': { help: 'id or name of its group', required: true },
      '--app-id <id>': 'app_id in server_url; default: derived from the name',
    },
    also: noBundleFault,
    secret: (issued, options, caller) =>
      issuedAnswer(caller, issued.application, issued.application.name, issued, options),
  });
  noun.row(applications.list, 'list', 'Lists applications.', {
    options: { '--group <group>': 'of this group only' },
    columns: applicationColumns,
  });
  noun.row(applications.get, 'show <application>', 'Shows an application, by id or name.');
  noun.row(
    applications.rename,
    'rename <application> <name>',
    'Renames an application. Its app_id, its credentials and the label of its token stay: databases notice nothing.',
  );
  noun.row(applications.enable, 'enable <application>', 'Re-enables an application.');
  noun.row(
    applications.disable,
    'disable <application>',
    'Every request with one of its access_guids is refused until it is enabled again.',
  );
  addCallers(noun);
  noun.row(
    applications.move,
    'move <application>',
    'Moves an application with its keys to another group. From the next request on, it cannot use keys of its old group, ' +
      'and the applications of that group cannot use its keys.',
    {
      options: { '--to <group>': { help: 'id or name of the group', required: true } },
      plan: {
        name: ({ application }) => application.name,
        say: describeMove,
        show: (output, planned) => output.say(`dry run: nothing was changed. ${describeMove(planned)}`),
      },
      text: (output, { application }) => output.record(application),
    },
  );
  noun.row(
    applications.rotateAccessGuid,
    'rotate-guid <application>',
    'Issues a second access_guid. Both are valid until the old one is removed.',
    {
      options: bundleFlags,
      also: noBundleFault,
      secret: async (issued, options, caller) => {
        const id = issued.record.applicationId;
        // Only for the texts of a bundle: the access_guid is issued, and must not be lost.
        const name = await caller.call(applications.get, { path: { id } }).then(
          (application) => application.name,
          () => id,
        );
        return issuedAnswer(caller, issued.record, name, issued, options);
      },
    },
  );
  noun.row(
    applications.accessGuids,
    'guids <application>',
    'Lists its access_guids, valid and removed; never their values.',
    { columns: { ID: 'id', CREATED: 'createdAt', 'LAST USED': 'lastUsedAt', REMOVED: 'removedAt' } },
  );
  noun.row(
    applications.removeAccessGuid,
    'remove-guid <application> <access-guid-id>',
    'Removes an access_guid by its id. The last valid one cannot be removed: disable the application instead.',
  );
  noun.row(
    applications.instances,
    'instances <application>',
    'Lists the database instances that use it, last used first.',
    {
      columns: {
        'APP ID': 'appId',
        HOST: 'host',
        PROCESS: 'process',
        'OS USER': 'osUser',
        LIBRARY: 'libraryVersion',
        'FIRST USED': 'firstUsedAt',
        'LAST USED': 'lastUsedAt',
        USES: 'uses',
      },
    },
  );
};

/** Path parameters of a master key, which the service keeps below its application. */
const masterKeyPath = async ({ call }: Caller, id: string) => {
  const { applicationId, kind, name } = await call(keys.get, { path: { id } });
  if (applicationId === null || kind !== 'master')
    throw new CommandError('not-found', `${name} is not a TDE master key`, { hint: 'dke key list --kind master' });
  return { applicationId, keyId: id };
};

const blastRadiusRows = (radius: BlastRadius) => ({
  items: [
    ...radius.instances.map((instance) => ({ ...instance, application: radius.applicationName })),
    ...radius.groupApplications.flatMap(({ name, instances }) =>
      instances.map((instance) => ({ ...instance, application: name })),
    ),
  ],
});
const describeRadius = ({ groupApplications, hosts, lastUsedAt, copies }: BlastRadius): string =>
  `last used ${lastUsedAt ?? 'never'}; hosts: ${hosts.join(', ') || 'none'}; other applications of the group: ` +
  `${groupApplications.map(({ name }) => name).join(', ') || 'none'}; copies: ${describeCopies(copies)}`;

const addMasterKey = (tde: Noun): void => {
  const noun = tde.noun('key', 'master keys, and other secret and private keys of databases');
  const also = async (caller: Caller, _: unknown, key = '') => ({ path: await masterKeyPath(caller, key) });

  noun.row(masterKeys.list, 'list <application>', 'Lists its master keys, newest first, including destroyed ones.', {
    columns: {
      ID: 'id',
      LABEL: 'name',
      TYPE: (row) => (row.class === 'private-key' ? `${row.type} private` : row.type),
      STATE: 'state',
      ORIGIN: 'origin',
      NEWEST: (row) => (row.newest ? 'newest' : ''),
      CREATED: 'createdAt',
      'FIRST USED': 'firstUsedAt',
      'LAST USED': 'lastUsedAt',
      DESTROYED: 'destroyedAt',
    },
  });
  noun.row(masterKeys.get, 'show <key>', 'Shows a master key, by id or label.', { also });
  noun.act(
    'public-key <key>',
    'Prints the public half of a private key as PEM (SubjectPublicKeyInfo).',
    {},
    async (caller, _, key = '') => {
      const { name, publicKey } = await caller.call(masterKeys.get, { path: await masterKeyPath(caller, key) });
      if (publicKey === null) throw new CommandError('config', `${name} is a secret key: it has no public half`);
      if (caller.output.raw) caller.output.record({ publicKey });
      else caller.output.bytes(Buffer.from(publicKey));
    },
  );
  noun.row(
    masterKeys.allowDecryption,
    'allow-decryption <key>',
    'Repairs a master key of a database that encrypts but cannot decrypt. Applies to the next request.',
    { also },
  );
  noun.row(masterKeys.blastRadius, 'blast-radius <key>', 'Shows who loses access if a master key is destroyed.', {
    also,
    text: (output, radius) => {
      output.list(blastRadiusRows(radius), {
        APPLICATION: 'application',
        'APP ID': 'appId',
        HOST: 'host',
        PROCESS: 'process',
        'OS USER': 'osUser',
        'LAST USED': 'lastUsedAt',
      });
      output.say(describeRadius(radius));
      for (const line of copyLines(radius.copies)) output.say(line);
    },
  });
  noun.row(
    masterKeys.destroy,
    'destroy <key>',
    'Destroys a master key: both copies are wiped, every use fails, and data that was encrypted under it becomes ' +
      `unreadable. ${waysBack.destroyed.way}`,
    {
      also,
      plan: {
        name: ({ key }) => key.name,
        say: ({ key, blastRadius }) =>
          `${key.name} will be destroyed (${describeRadius(blastRadius)}). ${waysBack.destroyed.way}`,
        show: (output, { key, blastRadius, plan }) => {
          output.say(`dry run: nothing was changed. ${key.name} would be destroyed.`);
          output.say(describeRadius(blastRadius));
          for (const line of copyLines(blastRadius.copies)) output.say(line);
          for (const { vaultName, required } of plan?.rules ?? [])
            output.say(`${required} others must approve it (dual control of ${vaultName})`);
        },
      },
      text: (output, { key }) => output.record(key),
    },
  );
};

export const addTde = (program: Command): void => {
  const tde = addNoun(program, 'tde');
  addGroup(tde);
  addApplication(tde);
  addMasterKey(tde);
};
