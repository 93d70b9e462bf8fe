// Data of a server that was killed, with one byte of one file changed, again and again: the service
// either refuses to start and names the file, or answers as it did before, or says of what it shows
// that it is damaged. What it must not do: answer something else, or end without a word. The files
// are listed from the folder, so that a new one is checked on its own.
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { loadConfig } from '../../server/app/config/config.ts';
import { startServer } from '../../server/app/process.ts';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import { StartError } from '../../server/base/start-error.ts';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { Snapshot } from '../../server/contract/api/snapshots-routes.ts';
import { createGroup, openConsoleApi, registerApplication } from './console-api.ts';
import { masterKey } from './open-service.ts';
import { startServerProcess } from './server-process.ts';
import { makeRecoveryKey } from './snapshot-files.ts';
import { callTdeRoute, Refused } from './tde-route.ts';
import { callXks, requestMetadata } from './xks-client.ts';

const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7).toString('base64') } as const;
const plaintext = Buffer.alloc(32, 0x3c);
const toml = `[erasure]
gather_ms = 10
[memory]
allow_unlocked = true
[log]
level = "error"
destination = "server.log"
[[audit.sinks]]
name = "file"
type = "file"
path = "dke-data/audit.jsonl"
[[root.providers]]
name = "words"
type = "passphrase"
file = "words"
[[root.providers]]
name = "key-file"
type = "file"
path = "provider/provider.key"
`;

/**
 * Requests to a service, by name. The answers of damaged copies are compared with those of the
 * undamaged one.
 */
type Answers = ReadonlyMap<string, unknown>;

export interface DamagedSite {
  /** Files below the folder that can be damaged, the longest-lived first. */
  readonly files: readonly string[];
  /**
   * Starts a copy with one changed byte. Returns the outcome: 'as before', the refusal, or the
   * fault.
   */
  tryByte(file: string, offset: number, change: number): Promise<ByteOutcome>;
  /** Does what `tryByte` does with a copy whose database was changed with SQL. */
  tryStatement(sql: string): Promise<ByteOutcome>;
  sizeOf(file: string): number;
  /** The last byte of each commit in the database's write-ahead log, the newest first. */
  commitEnds(): readonly number[];
  end(): void;
}
export type ByteOutcome =
  | { readonly kind: 'as before' }
  | { readonly kind: 'refused'; readonly message: string }
  /**
   * The service reported some of its data as damaged or did not return them, or refused a setting
   * that might be meant.
   */
  | { readonly kind: 'reported'; readonly what: readonly string[] }
  | { readonly kind: 'wrong'; readonly what: readonly string[] };

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => relative(folder, join(each.parentPath, each.name)))
    .sort();

/** Every leaf of a JSON value by its path. */
const leaves = (value: unknown, path = ''): [string, string][] =>
  value !== null && typeof value === 'object'
    ? Object.entries(value).flatMap(([name, each]) => leaves(each, `${path}/${name}`))
    : [[path, JSON.stringify(value)]];

/** The configuration in a folder; undefined when it cannot be read. */
const settingsOf = (folder: string): string | undefined => {
  try {
    return JSON.stringify(loadConfig(join(folder, 'dke.toml'), folder).settings);
  } catch {
    return undefined;
  }
};

/** Whether an answer, or a part of one, is marked as damaged. */
const tellsDamage = (value: unknown): boolean =>
  value !== null &&
  typeof value === 'object' &&
  ((value as { integrity?: unknown }).integrity === 'tampered' ||
    (value as { tampered?: unknown }).tampered === true ||
    (value as { valid?: unknown }).valid === false ||
    (value as { quarantined?: unknown }).quarantined === true ||
    (value as { state?: unknown }).state === 'missing' ||
    Object.values(value).some(tellsDamage));

export const openDamagedSite = async (builtProgram: string): Promise<DamagedSite> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-bytes-'));
  mkdirSync(join(folder, 'provider'), { mode: 0o700 });
  writeFileSync(join(folder, 'words'), 'correct horse battery staple\n', { mode: 0o600 });
  const server = await startServerProcess({ folder, toml, program: [builtProgram] });
  const token = server.adminToken;
  const api = openConsoleApi(server, token);
  const vault = await api.call<{ id: string }>('POST', '/api/vaults', { name: 'vault' });
  const clouds: { id: string; configuration: ProxyConfiguration; sealed: object }[] = [];
  for (const name of ['first', 'second', 'third']) {
    const { id } = await api.call<{ id: string }>('POST', '/api/keys', { name, vaultId: vault.id });
    const endpoint = await api.call<{ id: string }>('POST', '/api/endpoints', { name, vaultId: vault.id, keyId: id });
    const configuration = await api.call<ProxyConfiguration>('POST', `/api/endpoints/${endpoint.id}/credentials`);
    const { body } = await callXks(
      { server, configuration },
      {
        target: `/keys/${id}/encrypt`,
        body: {
          requestMetadata: requestMetadata(),
          plaintext: plaintext.toString('base64'),
          encryptionAlgorithm: 'AES_GCM',
        },
      },
    );
    await api.call('POST', `/api/keys/${id}/rotate`);
    clouds.push({ id, configuration, sealed: body });
  }
  const registered = await registerApplication(api, 'database', await createGroup(api, 'group'));
  const door = { accessGuid: registered.accessGuid, appId: registered.application.appId };
  const masters: { id: string; handle: number; sealed: Buffer }[] = [];
  for (const label of ['MK1', 'MK2', 'MK3']) {
    const { head } = await callTdeRoute(server, door, 'generateKey', masterKey(label));
    const { raw } = await callTdeRoute(server, door, 'encrypt', cbc, { handle: head.handle, raw: plaintext });
    masters.push({ id: head.id, handle: head.handle, sealed: raw });
  }
  await api.call('POST', '/api/recovery-keys', {
    name: 'safe',
    publicKey: formatRecoveryKey(makeRecoveryKey().publicKey),
  });
  const snapshot = await api.call<Snapshot>('POST', '/api/snapshots', {});
  const [, , doomed] = masters;
  await callTdeRoute(server, door, 'destroyObject', {}, { handle: doomed?.handle ?? 0 });
  const statusOf = async () =>
    (await api.call<{ erasure: { state: string; pendingKeys: number } }>('GET', '/api/status')).erasure;
  for (let seen = await statusOf(); seen.pendingKeys > 0 || seen.state !== 'idle'; seen = await statusOf());
  // A checkpoint next to the root key, and changes behind it that are in the log of the database
  // alone.
  await server.stop();
  const again = await startServerProcess({ folder, toml, program: [builtProgram] });
  await openConsoleApi(again, token).call('POST', '/api/vaults', { name: 'since the checkpoint' });
  await openConsoleApi(again, token).call('POST', `/api/keys/${clouds[0]?.id}/disable`);
  await again.stop('SIGKILL');
  rmSync(join(folder, 'server.log'), { force: true });

  const until = new Date().toISOString();
  const lists = [
    '/api/tenants',
    '/api/vaults?limit=1000',
    '/api/keys?limit=1000',
    ...clouds.map(({ id }) => `/api/keys/${id}/versions`),
    ...masters.map(({ id }) => `/api/keys/${id}`),
    '/api/endpoints?limit=1000',
    '/api/tde/groups?limit=1000',
    '/api/tde/applications?limit=1000',
    '/api/tokens?limit=1000',
    '/api/users?limit=1000',
    '/api/recovery-keys',
    `/api/snapshots/${snapshot.id}`,
    '/api/root',
    '/api/quarantine',
    `/api/audit?order=oldest&limit=1000&to=${encodeURIComponent(until)}`,
  ];
  const ask = async (place: {
    readonly url: string;
    readonly port: number;
    readonly caFile: string;
  }): Promise<Answers> => {
    const answers = new Map<string, unknown>();
    const asked = openConsoleApi(place, token);
    for (const path of lists) {
      const { status, text } = await asked.send('GET', path);
      answers.set(path, status === 200 ? JSON.parse(text) : { refused: status });
    }
    for (const { id, configuration, sealed } of clouds) {
      const { status, body } = await callXks(
        { server: place, configuration },
        {
          target: `/keys/${id}/decrypt`,
          body: {
            requestMetadata: requestMetadata({ kmsOperation: 'Decrypt' }),
            encryptionAlgorithm: 'AES_GCM',
            ...sealed,
          },
        },
      );
      answers.set(`cloud ${id}`, status === 200 ? body.plaintext : { refused: status });
    }
    for (const { id, handle, sealed } of masters)
      answers.set(
        `database ${id}`,
        await callTdeRoute(place, door, 'decrypt', cbc, { handle, raw: sealed }).then(
          ({ raw }) => raw.toString('hex'),
          (error: unknown) => {
            if (error instanceof Refused) return { refused: error.code };
            throw error;
          },
        ),
      );
    const { status, text } = await asked.send('POST', `/api/snapshots/${snapshot.id}/verify`, {});
    answers.set('snapshot verified', status === 200 ? JSON.parse(text).verification : { refused: status });
    return answers;
  };

  /** Starts a copy; answers what it answers, or why it refuses. */
  const startCopy = async (spoil: (copy: string) => void): Promise<Answers | StartError> => {
    const copy = mkdtempSync(join(tmpdir(), 'dke-byte-'));
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
    for (const name of ['', 'dke-data', 'provider', ...filesBelow(folder)])
      chmodSync(join(copy, name), statSync(join(folder, name)).mode & 0o777);
    try {
      spoil(copy);
      const running = await startServer({ config: loadConfig(join(copy, 'dke.toml'), copy), say: () => undefined });
      let ended: StartError | undefined;
      void running.ended.then((reason) => {
        ended = reason;
      });
      try {
        return await ask({ url: running.url, port: running.port, caFile: running.certificatePath });
      } catch (error) {
        if (ended !== undefined) return ended;
        throw error;
      } finally {
        await running.stop();
      }
    } catch (error) {
      if (error instanceof StartError) return error;
      throw error;
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  };

  // Differences between two undamaged copies do not count.
  const [one, other] = [await startCopy(() => undefined), await startCopy(() => undefined)];
  if (one instanceof StartError) throw one;
  if (other instanceof StartError) throw other;
  const expected = new Map([...one].map(([name, answer]) => [name, new Map(leaves(answer))]));
  const fleeting = new Set<string>();
  for (const [name, answer] of other)
    for (const [path, leaf] of leaves(answer))
      if (expected.get(name)?.get(path) !== leaf) fleeting.add(`${name}${path}`);

  /** What is answered otherwise, item by item where it is a list. */
  const compare = (answers: Answers): { readonly reported: string[]; readonly wrong: string[] } => {
    const reported: string[] = [];
    const wrong: string[] = [];
    for (const [name, answer] of answers) {
      if (answer !== null && typeof answer === 'object' && 'refused' in answer) {
        if (JSON.stringify(answer) !== JSON.stringify(one.get(name)))
          reported.push(`${name}: refused (${answer.refused})`);
        continue;
      }
      const now = new Map(leaves(answer));
      const differing = [...new Set([...(expected.get(name)?.keys() ?? []), ...now.keys()])].filter(
        (path) => !fleeting.has(`${name}${path}`) && expected.get(name)?.get(path) !== now.get(path),
      );
      if (differing.length === 0) continue;
      // A provider that no longer opens the root key is shown as such.
      (tellsDamage(answer) || name === '/api/root' ? reported : wrong).push(
        ...differing
          .slice(0, 3)
          .map((path) => `${name}${path}: ${expected.get(name)?.get(path)} became ${now.get(path)}`),
      );
    }
    // In quarantine everything is shown with that word next to it, and nothing is used.
    const quarantined = tellsDamage(answers.get('/api/quarantine'));
    return quarantined ? { reported: [...reported, ...wrong], wrong: [] } : { reported, wrong };
  };

  const judge = (answers: Answers | StartError, named: string): ByteOutcome => {
    if (!(answers instanceof StartError)) {
      const { reported, wrong } = compare(answers);
      if (wrong.length > 0) return { kind: 'wrong', what: wrong };
      return reported.length > 0 ? { kind: 'reported', what: reported } : { kind: 'as before' };
    }
    const { message } = answers;
    return answers.class !== 'internal' && message.includes(named)
      ? { kind: 'refused', message }
      : { kind: 'wrong', what: [`refused without the name of ${named} (${answers.class}): ${message}`] };
  };

  const files = filesBelow(folder).filter((name) => statSync(join(folder, name)).size > 0);
  return {
    files,
    sizeOf: (file) => statSync(join(folder, file)).size,
    commitEnds: () => {
      // sqlite.org/fileformat2.html, 4.1: a header of 32 bytes; frames of a header of 24 bytes and
      // a page; the frame of a commit has the database's size in pages at byte 4.
      const log = readFileSync(join(folder, 'dke-data/dke.db-wal'));
      const frame = 24 + log.readUInt32BE(8);
      const frames = Array.from({ length: Math.floor((log.length - 32) / frame) }, (_, at) => 32 + at * frame);
      return frames
        .filter((start) => log.readUInt32BE(start + 4) !== 0)
        .map((start) => start + frame - 1)
        .reverse();
    },
    tryStatement: async (sql) =>
      judge(
        await startCopy((copy) => {
          const database = new DatabaseSync(join(copy, 'dke-data/dke.db'));
          const { changes } = database.prepare(sql).run();
          database.close();
          if (changes === 0) throw new Error(`${sql}: changed no row`);
        }),
        'dke.db',
      ),
    tryByte: async (file, offset, change) => {
      let meant = false;
      const answers = await startCopy((copy) => {
        const path = join(copy, file);
        const { mode } = statSync(path);
        const before = settingsOf(copy);
        chmodSync(path, 0o600);
        const bytes = readFileSync(path);
        bytes.writeUInt8(bytes.readUInt8(offset) ^ change, offset);
        writeFileSync(path, bytes);
        chmodSync(path, mode & 0o777);
        meant = ![undefined, before].includes(settingsOf(copy));
      }).catch((error: unknown) => {
        // Not where it was asked, for example: at the address that the file names now.
        if (meant) return new StartError('config', String(error));
        throw error;
      });
      if (meant && answers instanceof StartError && answers.class !== 'internal')
        return { kind: 'reported', what: [`another setting, which might be meant: ${answers.message}`] };
      return judge(answers, basename(file).replace(/-(wal|shm)$/, ''));
    },
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
};

export interface ByteReport {
  /** How many bytes of each file were changed, by the outcome. */
  readonly tried: Readonly<Record<string, Readonly<Record<ByteOutcome['kind'], number>>>>;
  readonly wrong: readonly string[];
}

/** Changes bytes of every file, one at a time: the first and last ones, and by chance. */
export const corruptBytes = async (
  site: DamagedSite,
  {
    each,
    seed,
    tell = () => undefined,
  }: { readonly each: number; readonly seed: number; readonly tell?: (line: string) => void },
): Promise<ByteReport> => {
  let state = seed >>> 0;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
  const tried: Record<string, Record<ByteOutcome['kind'], number>> = {};
  const wrong: string[] = [];
  for (const file of site.files) {
    const counts = { 'as before': 0, refused: 0, reported: 0, wrong: 0 };
    tried[file] = counts;
    const size = site.sizeOf(file);
    // One alone is by chance: the first byte of most files is a magic number.
    const offsets = new Set(each === 1 ? [] : [0, size - 1]);
    while (offsets.size < Math.min(each, size)) offsets.add(random(size));
    for (const offset of [...offsets].slice(0, each)) {
      const change = 1 + random(255);
      const outcome = await site.tryByte(file, offset, change);
      counts[outcome.kind] += 1;
      if (outcome.kind === 'wrong')
        wrong.push(...outcome.what.map((what) => `${file}, byte ${offset} xor ${change}: ${what}`));
    }
    tell(`${file} (${size} bytes): ${JSON.stringify(counts)}`);
  }
  return { tried, wrong };
};
