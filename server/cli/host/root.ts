// `dke root`: the root key, what opens it, and its rotation; `dke quarantine`. What changes the
// root key's file works on the service's host while the service is stopped.

import type { Command } from 'commander';
import type { ProviderChange } from '../../app/host/offline.ts';
import { toRfc3339 } from '../../base/time.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Quarantine } from '../../contract/api/quarantine-routes.ts';
import type { Root } from '../../contract/api/root-routes.ts';
import { addNoun, configFlag } from '../service/command-rows.ts';
import { askFor, askSecret } from '../terminal/ask-secret.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import type { Output } from '../terminal/output.ts';
import { readSecretFile } from '../terminal/secret-files.ts';

const routes = operations.root;

const changes: readonly (readonly [ProviderChange, string, string])[] = [
  ['add', 'add-provider <name>', 'Lets a provider of dke.toml open the root key too. Wraps an unencrypted root key.'],
  [
    'remove',
    'remove-provider <name>',
    'Removes a provider: it can no longer open the root key. The last one cannot be removed.',
  ],
  [
    'rewrap',
    'rewrap <name>',
    'Gives a provider a new key: a new passphrase, or a new key of the module. Then the root key is rotated: back it up again.',
  ],
];

const show = (output: Output, root: Root): void => {
  if (output.raw) {
    output.record(root);
    return;
  }
  const { providers, ...rest } = root;
  output.record(rest);
  output.list(
    { items: providers },
    { PROVIDER: 'name', TYPE: 'type', SINCE: 'createdAt', OPENED: (row) => (row.opened ? 'at this start' : null) },
  );
};

const offlineFlags = {
  ...configFlag,
  '--passphrase-file <file>': 'with the passphrase that opens the root key now, or its backup (mode 600)',
  '--new-passphrase-file <file>': 'with the new passphrase (mode 600)',
} as const;

/** Loaded by the commands on the service's host only. */
const readConfig = async (path: string | undefined) =>
  (await import('../../app/config/config.ts')).loadHostConfig(path, process.cwd());

const pollMs = 200;
const longestWaitMs = 3_600_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const addRoot = (program: Command): void => {
  const noun = addNoun(program, 'root');
  noun.row(routes.get, 'show', 'Shows the epoch of the root key and what opens it.', { text: show });
  noun.act(
    'rotate',
    'Creates a new root key, or with --tenant a new key of that tenant, and seals everything under it while the service runs.',
    { '--wait': 'wait until it is done, at most for --timeout or an hour' },
    async ({ call, output, tenant, timeoutMs, resolve }, { wait }) => {
      const body = tenant === undefined ? {} : { tenantId: await resolve('tenant', tenant) };
      let rotated = await call(routes.rotate, { body });
      const end = performance.now() + (timeoutMs ?? longestWaitMs);
      while (wait === true && rotated.rotating) {
        if (performance.now() > end)
          throw new CommandError('unreachable', 'the rotation is not complete yet', {
            hint: 'it continues; run dke root show, and dke status to see what it waits for',
          });
        await pause(pollMs);
        rotated = await call(routes.get);
      }
      show(output, rotated);
    },
  );

  noun.row(
    routes.releaseCopy,
    'release-copy <name>',
    'Stops an erasure run from waiting for a standby that was removed. If it became the database afterwards, no key could be opened. Audited.',
    { text: show },
  );

  noun.act(
    'unseal',
    'Unseals a service with the passphrase of one of its root providers.',
    { '--passphrase-file <file>': 'file (mode 600), or - for standard input; without it, the command asks' },
    async ({ send }, { passphraseFile }) => {
      const passphrase =
        passphraseFile === undefined ? await askSecret('the root key', false) : readSecretFile(passphraseFile);
      if (passphrase === undefined)
        throw new CommandError('config', 'a passphrase is required, and there is no terminal', {
          hint: 'pass --passphrase-file; - reads standard input',
        });
      try {
        await send('/api/root/unseal', passphrase);
      } finally {
        passphrase.fill(0);
      }
      process.stdout.write('unsealed\n');
    },
  );
  noun.local(
    'backup',
    'Writes the root key into a new file, protected by a passphrase, and verifies the file. The service can be running. Run it as the user of ' +
      'the service. An erasure run makes the backup useless: create a new one afterwards.',
    { ...offlineFlags, '--out <file>': { help: 'the new file', required: true } },
    async (output, { config, out, passphraseFile, newPassphraseFile }) => {
      const { backUpRootKey } = await import('../../app/host/offline.ts');
      const ask = askFor(passphraseFile, newPassphraseFile);
      const { epoch, at } = await backUpRootKey(await readConfig(config), out, ask);
      output.record({ file: out, epoch, at: toRfc3339(at) });
    },
  );
  noun.local(
    'restore <backup>',
    'Restores the root key from a backup, as dke.toml declares it. Stop the service first.',
    {
      ...offlineFlags,
      '--if-missing':
        'do nothing if the root key file exists, or if no key is sealed yet; for a container that runs before each node',
    },
    async (output, options, backup = '') => {
      const { restoreRootKey } = await import('../../app/host/offline.ts');
      const ask = askFor(options.passphraseFile, options.newPassphraseFile);
      const config = await readConfig(options.config);
      const epoch = await restoreRootKey(config, backup, ask, { ifMissing: options.ifMissing ?? false });
      output.record({ file: config.root.path, ...(epoch === undefined ? { restored: false } : { epoch }) });
    },
  );
  for (const [change, usage, description] of changes)
    noun.local(
      usage,
      `${description} ${change === 'rewrap' ? 'The service can be running.' : 'Stop the service first.'}`,
      offlineFlags,
      async (output, { config, passphraseFile, newPassphraseFile }, name = '') => {
        const ask = askFor(passphraseFile, newPassphraseFile);
        const { changeProvider } = await import('../../app/host/offline.ts');
        const { providers } = await changeProvider(await readConfig(config), change, name, ask);
        output.list({ items: providers }, { PROVIDER: 'name', TYPE: 'type' });
      },
    );
};

const showQuarantine = (output: Output, { missing, differences, ...rest }: Quarantine): void => {
  output.record({ ...rest, missing: missing?.count ?? null, ...(missing === null ? {} : { signed: missing.signed }) });
  if (differences.length > 0)
    output.list(
      { items: differences },
      { COMPARED: 'what', FOUND: 'found', IN: 'foundIn', EXPECTED: 'expected', 'EXPECTED IN': 'expectedIn' },
    );
  if (missing === null) return;
  if (missing.sinks.length > 0)
    output.list(
      { items: missing.sinks },
      { SINK: 'name', TARGET: 'target', 'MISSING RECORDS': (row) => row.records ?? 'search it yourself' },
    );
  if (missing.records.length > 0)
    output.list(
      { items: missing.records },
      {
        RECORD: 'sequence',
        AT: 'at',
        KIND: 'kind',
        BY: 'actorName',
        OF: (row) => `${row.subjectKind} ${row.subjectId}`,
      },
    );
};

export const addQuarantine = (program: Command): void => {
  const { quarantine } = operations;
  const noun = addNoun(program, 'quarantine');
  noun.row(quarantine.get, 'show', 'Shows whether the service is in quarantine, why, and what differs.', {
    text: showQuarantine,
  });
  noun.row(
    quarantine.confirm,
    'confirm',
    'Accepts the database as it is. Audited. Everything that was disabled or revoked after this state is enabled and valid again.',
    { options: { '--code <code>': { help: 'the code that the service printed when it started', required: true } } },
  );
};
