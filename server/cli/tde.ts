// `dke tde`: groups, applications and master keys of databases.

import type { Command } from 'commander';
import { compatibilitySwitches } from '../base/compatibility.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { BlastRadius } from '../fronts/contract/api/master-keys.ts';
import type { Application, IssuedAccessGuid, MovedApplication } from '../fronts/contract/api/tde-applications.ts';
import { action, type Caller, type Paging, paged, type SecretTarget, secretTarget, showSecret } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { readTextFile } from './files.ts';
import { copyLines, describeCopies } from './key-copies.ts';
import { confirm, type Output } from './output.ts';

const isSwitch = (name: string): boolean => compatibilitySwitches.some((each) => each === name);

const { tdeGroups, applications, masterKeys, keys } = apiRoutes;

const listApplications = (
  output: Output,
  page: { readonly items: readonly Application[]; readonly next: string | null },
): void =>
  output.list(page, [
    ['ID', (row) => row.id],
    ['NAME', (row) => row.name],
    ['APP ID', (row) => row.appId],
    ['STATE', (row) => row.state],
    ['CREATED', (row) => row.createdAt],
  ]);

const addGroup = (tde: Command): void => {
  const noun = tde.command('group').summary('groups: databases that may share master keys');
  noun
    .command('create <name>')
    .description('Makes a group, and the vault of its master keys.')
    .action(
      action(async ({ call, output }, _, name) => {
        output.record(await call(tdeGroups.create, { body: { name } }));
      }),
    );
  paged(noun.command('list').description('Lists groups.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(tdeGroups.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['CREATED', (row) => row.createdAt],
      ]);
    }),
  );
  noun
    .command('get <group>')
    .description('Shows a group, by id or name.')
    .action(
      action(async ({ call, output, resolve }, _, group) => {
        output.record(await call(tdeGroups.get, { path: { id: await resolve('TDE group', group) } }));
      }),
    );
  paged(
    noun.command('members <group>').description('Lists the applications that share master keys in a group.'),
  ).action(
    action<Paging>(async ({ call, output, resolve }, query, group) => {
      const groupId = await resolve('TDE group', group);
      listApplications(output, await call(applications.list, { query: { ...query, groupId } }));
    }),
  );
};

interface BundleOptions extends SecretTarget {
  readonly databaseCaFile?: string;
}
const bundle = (command: Command): Command =>
  secretTarget(command).option(
    '--database-ca-file <path>',
    'ca_file of pkcs11.toml: where the database host has the certificate to trust',
  );
const tomlOf = ({ config }: IssuedAccessGuid, { databaseCaFile }: BundleOptions): string =>
  databaseCaFile === undefined
    ? config.pkcs11_toml
    : `${config.pkcs11_toml.trimEnd()}\nca_file = ${JSON.stringify(databaseCaFile)}\n`;
const bundleAnswer = (shown: object, issued: IssuedAccessGuid, options: BundleOptions) => ({
  shown,
  secret: { accessGuid: issued.accessGuid, serverUrl: issued.serverUrl, config: issued.config },
  file: tomlOf(issued, options),
});

interface CallersOptions {
  readonly addNetwork?: readonly string[];
  readonly removeNetwork?: readonly string[];
  readonly addCertificate?: readonly string[];
  readonly removeCertificate?: readonly string[];
}

const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;
/** A client's own certificate is the first one of its file. */
const readCertificate = (path: string): string => {
  const [pem] = pemBlock.exec(readTextFile(path)) ?? [];
  if (pem === undefined) throw new CommandError('config', `${path} has no certificate in PEM`);
  return pem;
};

const addCallers = (app: Command): void => {
  app
    .command('callers <application>')
    .description(
      'Shows or changes where the credentials of an application may be used from: networks (CIDR) and client certificates. ' +
        'An empty list allows any caller. Changes count from the next request on.',
    )
    .option('--add-network <network...>', 'allow an address or a network such as 192.0.2.0/24')
    .option('--remove-network <network...>', 'no longer allow it; all: remove every entry')
    .option('--add-certificate <file...>', 'allow the client certificate in a PEM file')
    .option('--remove-certificate <fingerprint...>', 'no longer allow it; all: remove every entry')
    .action(
      action<CallersOptions>(async ({ call, change, output, resolve }, options, application) => {
        const path = { id: await resolve('TDE application', application) };
        if (Object.keys(options).length === 0) return output.record(await call(applications.get, { path }));
        const { addNetwork = [], removeNetwork = [], addCertificate = [], removeCertificate = [] } = options;
        const added = addCertificate.map(readCertificate);
        output.record(
          await change(applications.get, applications.setCallers, path, ({ callers }: Application) => {
            const isKept = (removed: readonly string[]) => (entry: string) =>
              !removed.includes(entry) && !removed.includes('all');
            const entries = [...callers.networks, ...callers.certificates.map(({ fingerprint }) => fingerprint), 'all'];
            const unknown = [...removeNetwork, ...removeCertificate].filter((entry) => !entries.includes(entry));
            if (unknown.length > 0)
              throw new CommandError('not-found', `not among the allowed callers: ${unknown.join(', ')}`, {
                hint: `dke tde app callers ${application}`,
              });
            const certificates = callers.certificates.filter(({ fingerprint }) =>
              isKept(removeCertificate)(fingerprint),
            );
            return {
              networks: [...callers.networks.filter(isKept(removeNetwork)), ...addNetwork],
              certificates: [...certificates.map(({ pem }) => pem), ...added],
            };
          }),
        );
      }),
    );
};

const addApplication = (tde: Command): void => {
  const noun = tde.command('app').summary('applications: what a database instance is bound to');

  bundle(noun.command('register <name>').description('Registers an application. The access_guid is shown this once.'))
    .requiredOption('--group <group>', 'id or name of its group')
    .option('--app-id <id>', 'app_id in server_url; made of the name when absent')
    .action(
      action<BundleOptions & { readonly group: string; readonly appId?: string }>(
        async ({ call, output, resolve }, options, name) => {
          const groupId = await resolve('TDE group', options.group);
          const body = { name, groupId, ...(options.appId === undefined ? {} : { appId: options.appId }) };
          await showSecret(output, options, async () => {
            const issued = await call(applications.register, { body });
            return bundleAnswer(issued.application, issued, options);
          });
        },
      ),
    );

  paged(noun.command('list').description('Lists applications.'))
    .option('--group <group>', 'of this group only')
    .action(
      action<Paging & { readonly group?: string }>(async ({ call, output, resolve }, { group, ...query }) => {
        const groupId = group === undefined ? undefined : await resolve('TDE group', group);
        listApplications(output, await call(applications.list, { query: { ...query, groupId } }));
      }),
    );

  for (const [verb, description] of [
    ['get', 'Shows an application, by id or name.'],
    ['enable', 'Takes an application into use again.'],
    ['disable', 'Every request with one of its access_guids is refused until it is enabled again.'],
  ] as const)
    noun
      .command(`${verb} <application>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, application) => {
          const path = { id: await resolve('TDE application', application) };
          output.record(await call(applications[verb], { path }));
        }),
      );

  noun
    .command('compatibility <application>')
    .description(
      'Permits weaker cryptography that programs of an application depend on, or withdraws it. Shows what is permitted. ' +
        `Switches: ${compatibilitySwitches.join(', ')}.`,
    )
    .option('--permit <switch...>', 'turn on')
    .option('--withdraw <switch...>', 'turn off')
    .action(
      action<{ readonly permit?: readonly string[]; readonly withdraw?: readonly string[] }>(
        async ({ call, change, output, resolve }, { permit = [], withdraw = [] }, application) => {
          const path = { id: await resolve('TDE application', application) };
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
      ),
    );

  addCallers(noun);

  noun
    .command('move <application>')
    .description(
      'Moves an application with its keys to another group. From the next request on it can use no key of the group that it ' +
        'has left, and the applications there none of its keys.',
    )
    .requiredOption('--to <group>', 'id or name of the group')
    .option('--dry-run', 'show the consequences, change nothing')
    .option('--confirm <name>', 'the name of the application, to go on without a question')
    .action(
      action<{ readonly to: string; readonly dryRun?: boolean; readonly confirm?: string }>(
        async ({ call, output, resolve }, options, application) => {
          const path = { id: await resolve('TDE application', application) };
          const groupId = await resolve('TDE group', options.to);
          const planned = await call(applications.move, { path, query: { dryRun: 'true' }, body: { groupId } });
          if (options.dryRun === true) {
            if (output.format === 'json') return output.record(planned);
            output.say(`dry run: nothing was changed. ${describeMove(planned)}`);
            return;
          }
          const { name } = planned.application;
          await confirm(describeMove(planned), name, options.confirm);
          const done = await call(applications.move, { path, body: { groupId, confirm: name } });
          output.record(output.format === 'json' ? done : done.application);
        },
      ),
    );

  bundle(
    noun
      .command('rotate-guid <application>')
      .description('Issues a second access_guid. Both hold until the old one is removed.'),
  ).action(
    action<BundleOptions>(async ({ call, output, resolve }, options, application) => {
      const path = { id: await resolve('TDE application', application) };
      await showSecret(output, options, async () => {
        const issued = await call(applications.rotateAccessGuid, { path });
        return bundleAnswer(issued.record, issued, options);
      });
    }),
  );

  noun
    .command('guids <application>')
    .description('Lists its access_guids, live and removed; never their values.')
    .action(
      action(async ({ call, output, resolve }, _, application) => {
        const path = { id: await resolve('TDE application', application) };
        output.list(await call(applications.accessGuids, { path }), [
          ['ID', (row) => row.id],
          ['CREATED', (row) => row.createdAt],
          ['LAST USED', (row) => row.lastUsedAt],
          ['REMOVED', (row) => row.removedAt],
        ]);
      }),
    );

  noun
    .command('remove-guid <application> <access-guid-id>')
    .description('Removes an access_guid, named by its id. The last live one stays: disable the application instead.')
    .action(
      action(async ({ call, output, resolve }, _, application, accessGuidId) => {
        const path = { id: await resolve('TDE application', application), accessGuidId };
        output.record(await call(applications.removeAccessGuid, { path }));
      }),
    );

  noun
    .command('instances <application>')
    .description('Lists the database instances that use it, latest use first.')
    .action(
      action(async ({ call, output, resolve }, _, application) => {
        const path = { id: await resolve('TDE application', application) };
        output.list(await call(applications.instances, { path }), [
          ['APP ID', (row) => row.appId],
          ['HOST', (row) => row.host],
          ['PROCESS', (row) => row.process],
          ['OS USER', (row) => row.osUser],
          ['LIBRARY', (row) => row.libraryVersion],
          ['FIRST USED', (row) => row.firstUsedAt],
          ['LAST USED', (row) => row.lastUsedAt],
          ['USES', (row) => row.uses],
        ]);
      }),
    );
};

const describeMove = ({ application, move }: MovedApplication): string => {
  const names = (all: readonly { readonly name: string }[]): string => all.map(({ name }) => name).join(', ') || 'none';
  const taken =
    move.takenLabels.length === 0
      ? ''
      : ` It cannot be moved: ${move.to.name} has keys labelled ${move.takenLabels.join(', ')}.`;
  return (
    `${application.name} moves from ${move.from.name} to ${move.to.name} with ${move.keys} keys and ${move.objects} other objects. ` +
    `It loses ${move.keysLost} keys of ${names(move.leaves)}, who lose its keys: their databases that still need one stop reading. ` +
    `From then on it shares keys with ${names(move.joins)}.${taken}`
  );
};

/** Path parameters of a master key, which the service keeps below its application. */
const masterKeyPath = async ({ call, resolve }: Caller, key: string) => {
  const id = await resolve('key', key);
  const { applicationId, kind, name } = await call(keys.get, { path: { id } });
  if (applicationId === null || kind !== 'master')
    throw new CommandError('not-found', `${name} is no TDE master key`, { hint: 'dke key list --kind master' });
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
  `${groupApplications.map(({ name }) => name).join(', ') || 'none'}; copies in other tenants: ${describeCopies(copies)}`;

const addMasterKey = (tde: Command): void => {
  const noun = tde.command('key').summary('master keys, and other secret and private keys of databases');

  paged(
    noun.command('list <application>').description('Lists its master keys, newest first, destroyed ones too.'),
  ).action(
    action<Paging>(async ({ call, output, resolve }, query, application) => {
      const path = { applicationId: await resolve('TDE application', application) };
      output.list(await call(masterKeys.list, { path, query: { ...query } }), [
        ['ID', (row) => row.id],
        ['LABEL', (row) => row.name],
        ['TYPE', (row) => (row.class === 'private-key' ? `${row.type} private` : row.type)],
        ['STATE', (row) => row.state],
        ['ORIGIN', (row) => row.origin],
        ['NEWEST', (row) => (row.newest ? 'newest' : '')],
        ['CREATED', (row) => row.createdAt],
        ['FIRST USED', (row) => row.firstUsedAt],
        ['LAST USED', (row) => row.lastUsedAt],
        ['DESTROYED', (row) => row.destroyedAt],
      ]);
    }),
  );

  noun
    .command('get <key>')
    .description('Shows a master key, by id or label.')
    .action(
      action(async (caller, _, key) => {
        caller.output.record(await caller.call(masterKeys.get, { path: await masterKeyPath(caller, key) }));
      }),
    );

  noun
    .command('public-key <key>')
    .description('Prints the public half of a private key as PEM (SubjectPublicKeyInfo).')
    .action(
      action(async (caller, _, key) => {
        const { name, publicKey } = await caller.call(masterKeys.get, { path: await masterKeyPath(caller, key) });
        if (publicKey === null) throw new CommandError('config', `${name} is a secret key: it has no public half`);
        if (caller.output.format === 'json') caller.output.record({ publicKey });
        else caller.output.bytes(Buffer.from(publicKey));
      }),
    );

  noun
    .command('blast-radius <key>')
    .description('Shows whom the destruction of a master key would cut off.')
    .action(
      action(async (caller, _, key) => {
        const { output, call } = caller;
        const radius = await call(masterKeys.blastRadius, { path: await masterKeyPath(caller, key) });
        if (output.format === 'json') return output.record(radius);
        output.list(blastRadiusRows(radius), [
          ['APPLICATION', (row) => row.application],
          ['APP ID', (row) => row.appId],
          ['HOST', (row) => row.host],
          ['PROCESS', (row) => row.process],
          ['OS USER', (row) => row.osUser],
          ['LAST USED', (row) => row.lastUsedAt],
        ]);
        output.say(describeRadius(radius));
        for (const line of copyLines(radius.copies)) output.say(line);
      }),
    );

  noun
    .command('destroy <key>')
    .description(
      'Destroys a master key for good: both copies are wiped, every use fails from now on, and what was encrypted ' +
        'under it becomes unreadable.',
    )
    .option('--dry-run', 'show the blast radius, change nothing')
    .option('--confirm <label>', 'the label of the key, to go on without a question')
    .action(
      action<{ readonly dryRun?: boolean; readonly confirm?: string }>(async (caller, options, key) => {
        const { call, output } = caller;
        const path = await masterKeyPath(caller, key);
        const planned = await call(masterKeys.destroy, { path, query: { dryRun: 'true' }, body: {} });
        if (options.dryRun === true) {
          if (output.format === 'json') return output.record(planned);
          output.say(`dry run: nothing was changed. ${planned.key.name} would be destroyed.`);
          output.say(describeRadius(planned.blastRadius));
          for (const line of copyLines(planned.blastRadius.copies)) output.say(line);
          for (const { vaultName, required } of planned.plan?.rules ?? [])
            output.say(`${required} others must agree (dual control of ${vaultName})`);
          return;
        }
        const { name } = planned.key;
        await confirm(
          `${name} will be destroyed for good (${describeRadius(planned.blastRadius)}).`,
          name,
          options.confirm,
        );
        const done = await call(masterKeys.destroy, { path, body: { confirm: name } });
        output.record(output.format === 'json' ? done : done.key);
      }),
    );
};

export const addTde = (program: Command): void => {
  const tde = program.command('tde').summary('databases: groups, applications, master keys');
  addGroup(tde);
  addApplication(tde);
  addMasterKey(tde);
};
