// Services as a released version left them: the database, the root key, a snapshot of each tenant,
// a recovery key, and what was encrypted with their keys: test/contract/services/. A recorded file
// is never changed. `node test/support/released-services.ts` records this version.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { newestSchema } from '../../server/adapters/store/migrations/migrate.ts';
import { createRecoveryKeyFile, openRecoveryKeyFile } from '../../server/cli/service/recovery-key-file.ts';
import { core } from './core-keys.ts';
import { administrator, dataObject, masterKey, openTestService, registerCaller } from './open-service.ts';
import { type PostgresPlace, postgresqlPrograms, startPostgres } from './postgresql.ts';
import { actorIn, handOf } from './snapshots.ts';

const folder = join(import.meta.dirname, '../contract/services');
const nameOf = (schema: string, dialect: Dialect): string => join(folder, `${schema}.${dialect}.br`);
export type Dialect = 'sqlite' | 'postgresql';

export const releasedServices = (): readonly string[] =>
  [...new Set(readdirSync(folder).map((file) => file.split('.')[0] ?? ''))].toSorted();

/** What was made with the service, to be found again. */
export interface ReleasedFacts {
  readonly tenantId: string;
  readonly secondTenantId: string;
  readonly snapshotId: string;
  readonly secondSnapshotId: string;
  readonly accessGuid: string;
  readonly appId: string;
  readonly masterKeyHandle: number;
  readonly dataHandle: number;
  /** Base64: 16 bytes of 7, under the master key, AES-CBC with an IV of 16 bytes of 7. */
  readonly ciphertext: string;
  readonly verifierKey: string;
}
export const releasedPlain = Buffer.alloc(16, 7);
export const releasedCipher = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;

interface ReleasedService {
  readonly facts: ReleasedFacts;
  /** Base64, by their paths in the service's folder. */
  readonly files: Readonly<Record<string, string>>;
  /** The PostgreSQL database as SQL; null: the service is on SQLite. */
  readonly sql: string | null;
}

const settings = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
export const releasedToml = (place: PostgresPlace | null): string =>
  place === null
    ? settings
    : `${settings}[store]\ntype = "postgresql"\nhost = "${place.host}"\ndatabase = "${place.database}"\nreplica_lag_seconds = 0\n`;

/**
 * Lays the folder of a recorded service; on PostgreSQL, into an empty database. Opens its recovery
 * key.
 */
export const layReleased = async (
  schema: string,
  to: string,
  place: PostgresPlace | null,
): Promise<{ readonly facts: ReleasedFacts; readonly recovery: Awaited<ReturnType<typeof openRecoveryKeyFile>> }> => {
  const file = readFileSync(nameOf(schema, place === null ? 'sqlite' : 'postgresql'));
  const { facts, files, sql } = JSON.parse(brotliDecompressSync(file).toString('utf8')) as ReleasedService;
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(to, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(to, path), Buffer.from(content, 'base64'), { mode: 0o600 });
  }
  if (place !== null && sql !== null)
    execFileSync(
      join(postgresqlPrograms, 'psql'),
      ['-qX', '-h', place.host, '-U', place.user, '-d', place.database, '-v', 'ON_ERROR_STOP=1'],
      { input: sql, stdio: ['pipe', 'ignore', 'inherit'] },
    );
  const recovery = await openRecoveryKeyFile(core, join(to, 'recovery.key'), () => Promise.resolve(Buffer.alloc(0)));
  return { facts, recovery };
};

/** Two tenants with keys of every kind of record, and a snapshot of each. */
const fill = async (own: string, place: PostgresPlace | null): Promise<{ facts: ReleasedFacts; schema: string }> => {
  createRecoveryKeyFile(core, join(own, 'recovery.key'), null);
  const { id, key } = await openRecoveryKeyFile(core, join(own, 'recovery.key'), () =>
    Promise.resolve(Buffer.alloc(0)),
  );
  const opened = await openTestService({ folder: own, toml: releasedToml(place) });
  try {
    const { operations } = opened;
    const hand = await handOf(opened, { id, key, publicKey: core.hpkePublicKey(key) });
    const makeCloudKey = async (actor: typeof administrator): Promise<void> => {
      const vault = await operations.vaults.create(actor, { name: 'cloud' });
      const general = await operations.keys.create(actor, { name: 'cloud', vaultId: vault.id });
      await operations.keys.rotate(actor, general.id);
      const endpoint = await operations.endpoints.create(actor, {
        name: 'door',
        vaultId: vault.id,
        keyId: general.id,
      });
      await operations.endpoints.addCredential(actor, endpoint.id);
    };
    const { tenantId } = administrator;
    await makeCloudKey(administrator);
    const { caller, accessGuid } = await registerCaller(opened, 'erp');
    const made = await operations.tde.generateKey(caller, masterKey('pages'));
    const data = await operations.tde.createObject(caller, dataObject('note'), Buffer.from('kept'));
    const ciphertext = await operations.tde.encrypt(caller, made.handle, releasedCipher, releasedPlain);
    const second = await operations.tenants.create(administrator, { name: 'second' });
    await makeCloudKey(actorIn(second.id));
    const facts: ReleasedFacts = {
      tenantId,
      secondTenantId: second.id,
      snapshotId: await hand.make(tenantId),
      secondSnapshotId: await hand.make(second.id),
      accessGuid,
      appId: caller.appId,
      masterKeyHandle: made.handle,
      dataHandle: data.handle,
      ciphertext: ciphertext.toString('base64'),
      verifierKey: (await operations.audit.log()).verifierKey,
    };
    return { facts, schema: newestSchema };
  } finally {
    await opened.stop();
  }
};

/** Not its log files and locks. */
const isKept = (path: string): boolean => /recovery\.key$|root\.key|dke\.db$|\.dkesnap$|snapshots\//.test(path);

const record = async (): Promise<void> => {
  const server = await startPostgres();
  try {
    for (const place of [null, server.createDatabase('released')]) {
      const own = mkdtempSync(join(tmpdir(), 'dke-released-'));
      const { facts, schema } = await fill(own, place);
      if (place === null) {
        const database = new DatabaseSync(join(own, 'dke-data', 'dke.db'));
        database.exec('pragma wal_checkpoint(truncate)');
        database.close();
      }
      const paths = readdirSync(own, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(own.length + 1))
        .filter(isKept);
      const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(own, path)).toString('base64')]));
      const sql =
        place === null
          ? null
          : execFileSync(
              join(postgresqlPrograms, 'pg_dump'),
              ['-h', place.host, '-U', place.user, '-d', place.database, '--no-owner', '--no-privileges', '--inserts'],
              { encoding: 'utf8' },
            );
      const whole: ReleasedService = { facts, files, sql };
      writeFileSync(
        nameOf(schema, place === null ? 'sqlite' : 'postgresql'),
        brotliCompressSync(Buffer.from(JSON.stringify(whole))),
      );
      rmSync(own, { recursive: true, force: true });
    }
  } finally {
    await server.remove();
  }
};
if (import.meta.main) await record();
