// PostgreSQL 15 with what it can have under the service's keys: the commands of
// docs/databases/postgresql.md as they are printed. The pass phrases are looked for in every file
// of every folder; what the page says is unencrypted is proved to be, too.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandPath } from '../support/command.ts';
import { freePort } from '../support/daemon.ts';
import { engine } from '../support/openssl.ts';
import { openPage, type PageRun } from '../support/page.ts';
import { library } from '../support/pkcs11-host.ts';
import { postgresqlPrograms, postgresqlUser } from '../support/postgresql.ts';
import { filesHolding } from '../support/search.ts';
import { installed, run } from '../support/tools.ts';

const card = 'card 4929 1234 5678 9012';
const mountedCard = 'card 5500 0000 0000 0004';
const present =
  installed('postgresql-15', join(postgresqlPrograms, 'initdb'), 'psql') &&
  installed('pgbackrest', 'pgbackrest') &&
  installed('opensc', 'pkcs11-tool');

/** Everything runs as PostgreSQL's user, who needs access to the built files. */
const reachable = async (): Promise<boolean> => {
  const needed = [library, commandPath, process.execPath];
  const tried = await Promise.all(needed.map((path) => run('test', ['-r', path], { ...postgresqlUser() })));
  const hidden = needed.filter((_, at) => tried[at]?.code !== 0);
  if (hidden.length > 0) console.log(`skipped: the user postgres may not read ${hidden.join(' and ')}`);
  return hidden.length === 0;
};

describe.runIf(present && (await reachable()))('docs/databases/postgresql.md', () => {
  let page: PageRun;
  /** Known to this test alone, and never written by it. */
  const passPhrases = new Map<string, string>();
  let canMount = false;
  beforeAll(async () => {
    page = await openPage('databases/postgresql', {
      user: postgresqlUser(),
      programs: [postgresqlPrograms],
      variables: {
        PGPORT: String(await freePort()),
        PGUSER: 'postgres',
      },
    });
    expect((await page.shell('mkdir socket; export PGHOST=$PWD/socket')).code).toBe(0);
    await page.done('Register the database');
    page.settle('pkcs11.toml');
    canMount = await mountable();
  });
  afterAll(async () => {
    await page.shell(
      'for data in data restored mounted/data; do pg_ctl -D $data -m immediate -w stop || true; done; fusermount3 -u mounted || true',
    );
    await page.end();
  });

  const path = (name: string): string => join(page.folder, name);
  /** A container may lack FUSE, or the right to mount. */
  const mountable = async (): Promise<boolean> => {
    if (!installedHere('gocryptfs', 'fusermount3')) return false;
    const tried = await page.shell(
      'mkdir try tried; echo any > pass; gocryptfs -q -init -passfile pass try && gocryptfs -q -passfile pass try tried && fusermount3 -u tried',
    );
    await page.shell('rm -rf try tried pass');
    if (tried.code !== 0) console.log(`skipped: gocryptfs cannot mount here: ${tried.complaints.trim()}`);
    return tried.code === 0;
  };
  const installedHere = (...programs: string[]): boolean => {
    const missing = programs.filter((name) => !existsSync(`/usr/bin/${name}`));
    if (missing.length > 0) console.log(`skipped: ${missing.join(' and ')} not installed (packages gocryptfs, fuse3)`);
    return missing.length === 0;
  };
  const unsealed = async (name: string): Promise<string> => {
    const { code, out, complaints } = await page.shell(`./unseal ${name}.sealed`);
    expect(code, complaints).toBe(0);
    expect(out).toMatch(/^[\w+/]{44}$/);
    return out;
  };
  /** No pass phrase that was ever sealed is in a file. */
  const noPassPhraseInTheOpen = (): void => {
    const folders = [page.folder, page.logDirectory, page.site.server.dataDirectory];
    expect(filesHolding(folders, ...passPhrases.values())).toEqual([]);
  };

  test('a server starts with a TLS key whose pass phrase the service unseals', async () => {
    await page.done('Create the sealing key');
    expect(await page.done("The server's TLS key")).toMatch(/on\n$/);
    passPhrases.set('tls', await unsealed('tls'));
    noPassPhraseInTheOpen();
    const key = await page.shell(
      'head -n 1 data/server.key; openssl pkey -in data/server.key -passin pass:wrong -noout',
    );
    expect(key.out).toBe('-----BEGIN ENCRYPTED PRIVATE KEY-----\n');
    expect(key.code).not.toBe(0);
  });

  test('a backup is made, and neither it nor the archived WAL holds what the tables hold', async () => {
    expect(await page.done('Backups')).not.toContain('ERROR');
    passPhrases.set('repository', await unsealed('repository'));
    expect(filesHolding([path('repository')], card, 'archive-push')).toEqual([]);
    noPassPhraseInTheOpen();
    // According to the page, it is unencrypted in the data directory, and the search finds it
    // there.
    expect((await page.shell('psql -Xqc checkpoint postgres')).code).toBe(0);
    expect(filesHolding([path('data')], card)).not.toEqual([]);
  });

  test('the environment of the archiver has no pass phrase, only that of one command does', async () => {
    const { code, out, complaints } = await page.shell(
      `tr '\\0' '\\n' < /proc/$(head -n 1 data/postmaster.pid)/environ`,
    );
    expect(code, complaints).toBe(0);
    expect(out).not.toContain('CIPHER_PASS');
    expect(out).not.toContain(passPhrases.get('repository'));
  });

  test('the backup is restored, with WAL that the wrapper fetches', async () => {
    const { code, out, complaints } = await page.heading('Restore');
    expect(code, `${out}${complaints}${(await run('cat', [path('restored.log')])).out}`).toBe(0);
    expect(out).toContain(`${card}\n`);
    noPassPhraseInTheOpen();
  });

  test('a data directory on an encrypted file system contains nothing unencrypted', async (context) => {
    if (!canMount) return context.skip('no FUSE here');
    await page.done('The data directory');
    passPhrases.set('volume', await unsealed('volume'));
    expect(filesHolding([path('volume')], mountedCard, 'PG_VERSION')).toEqual([]);
    const again = await page.shell(
      `gocryptfs -q -extpass "$PWD/unseal" -extpass "$PWD/volume.sealed" volume mounted
      grep -rlF '${mountedCard}' mounted | wc -l
      fusermount3 -u mounted`,
    );
    expect(Number(again.out), again.complaints).toBeGreaterThan(0);
    noPassPhraseInTheOpen();
  });

  test.runIf(installed('libengine-pkcs11-openssl', engine))(
    'psql logs in with a key that signs in the service',
    async () => {
      expect(await page.done("A client's key on the token")).toMatch(/^\/CN=postgres\|TLSv1\.3$/m);
    },
  );

  test('the same secrets are sealed under a new key, and the old one is destroyed', async () => {
    await page.done('Rotate the sealing key');
    for (const [name, passPhrase] of passPhrases) expect(await unsealed(name), name).toBe(passPhrase);
    noPassPhraseInTheOpen();
  });

  test('another group unseals nothing', async () => {
    const stranger = await page.shell(
      `dke tde group create sales; dke tde app register crm --group sales --out crm.toml --database-ca-file "$DKE_CA_FILE"
      sed 's/pkcs11.toml/crm.toml/' unseal > unseal-crm; sh unseal-crm tls.sealed > unsealed-crm`,
    );
    expect(stranger.code).not.toBe(0);
    expect(stranger.complaints).toContain('stays sealed');
    expect((await run('cat', [path('unsealed-crm')])).out).toBe('');
  });

  test('after destruction nothing is unsealed: no start, no backup, no restore, no mount', async () => {
    await page.done('Destroy');
    const [says = ''] = page.blocks('Destroy', 'text');
    const attempts = [
      './unseal tls.sealed',
      './dke-pgbackrest backup',
      './dke-pgbackrest --pg1-path="$PWD/again" restore',
      ...(canMount ? ['gocryptfs -q -extpass "$PWD/unseal" -extpass "$PWD/volume.sealed" volume mounted'] : []),
    ];
    for (const attempt of attempts) {
      const { code, out, complaints } = await page.shell(attempt);
      expect(code, attempt).not.toBe(0);
      expect(out + complaints, attempt).toContain(says.trim());
    }
    const start = await page.shell(
      'rm -f server.log; pg_ctl -D data -l server.log -w start; cat server.log >&2; exit 1',
    );
    expect(start.complaints + (await run('cat', [path('server.log')])).out).toContain(says.trim());
    noPassPhraseInTheOpen();
  });
});
