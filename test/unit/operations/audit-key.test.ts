// The key that signs the audit log is rotated: with the former or the new verifier key, the whole
// log can be checked; a key that no rotation names is refused; and the service continues with the
// new key.
import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../server/base/bytes.ts';
import {
  type Checkpoint,
  type NoteSigner,
  parseCheckpoint,
  parseVerifierKey,
  signedNote,
  type Verifier,
  verifierKey,
} from '../../../server/base/checkpoint.ts';
import { growTree, leafHash } from '../../../server/base/merkle-tree.ts';
import { verifyAuditLog } from '../../../server/cli/verify/audit-export.ts';
import { administrator } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}
const parsed = (text: string): Verifier => {
  const verifier = parseVerifierKey(text);
  if (verifier === null) throw new Error(`${text} is not a verifier key`);
  return verifier;
};

describe('of a service', () => {
  const service = sharedService();
  const former: Verifier[] = [];
  const gather = async (from: AsyncIterable<readonly string[]>): Promise<string[]> => {
    const lines: string[] = [];
    for await (const page of from) lines.push(...page);
    return lines;
  };
  const exported = async () => gather(await service.operations.audit.export(administrator));
  const current = async (): Promise<Verifier> => parsed((await service.operations.audit.log()).verifierKey);
  const rotated = () =>
    expect.poll(() => service.operations.root.get(administrator)).toMatchObject({ rotating: false });
  const rotate = async (): Promise<void> => {
    former.push(await current());
    await service.operations.vaults.create(administrator, { name: `before ${former.length}` });
    await service.operations.audit.rotateKey(administrator);
    await service.operations.vaults.create(administrator, { name: `after ${former.length}` });
    await rotated();
  };
  const anchorPath = () => `${service.config.root.path}.checkpoint`;

  test('the log verifies with the former key and the new one, completely and by tenant', async () => {
    await service.operations.audit.checkpoint();
    const first = readFileSync(anchorPath(), 'utf8');
    await rotate();
    await rotate();
    const lines = await exported();
    const part = await gather(await service.operations.audit.exportTenant(administrator));
    const keys = [...former, await current()];
    expect(new Set(keys.map(({ keyId }) => keyId.toString('hex'))).size).toBe(3);
    const { checkpoint: last } = JSON.parse(lines.at(-1) ?? '') as { readonly checkpoint: string };
    const kept = [first, last].map((note) => parseCheckpoint(note) as Checkpoint);
    for (const key of keys) {
      const whole = await verifyAuditLog(each(lines), key, kept);
      expect(whole.findings).toEqual([]);
      expect(whole.signed).toBe(whole.records);
      expect((await verifyAuditLog(each(part), key)).findings).toEqual([]);
    }
    const log = await service.operations.audit.log();
    expect(log.formerKeys).toHaveLength(2);
    expect(log.rotationDueAt).toBe((log.keySince ?? 0) + 730 * 86_400_000);
  });

  test('the former key is overwritten, and older copies of the database no longer open it', async () => {
    expect((await service.operations.root.get(administrator)).epoch).toBe(3);
    const rows = await queryStored(
      service.folder,
      "select version, record is null as gone from key_records where class = 'audit-signature' order by version",
    );
    expect(rows.map(({ version, gone }) => [Number(version), Boolean(gone)])).toEqual([
      [1, true],
      [2, true],
      [3, false],
    ]);
  });

  test('a key that no rotation names is refused', async () => {
    const lines = await exported();
    const [key] = former as [Verifier];
    const announced = lines.filter((line) => {
      const { checkpoint } = JSON.parse(line) as { readonly checkpoint?: string };
      return checkpoint === undefined || parseCheckpoint(checkpoint)?.rotation === undefined;
    });
    expect(announced.length).toBe(lines.length - 2);
    expect((await verifyAuditLog(each(announced), key)).findings[0]).toMatch(/is not signed with this key/);
    expect((await verifyAuditLog(each(announced), await current())).findings[0]).toMatch(/is not signed with this key/);
  });

  test('only one rotation at a time', async () => {
    former.push(await current());
    const both = await Promise.allSettled([
      service.operations.audit.rotateKey(administrator),
      service.operations.audit.rotateKey(administrator),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await rotated();
  });

  test('a service that ends between the rotation and the checkpoint next to the root key starts again', async () => {
    await service.operations.audit.checkpoint();
    const before = readFileSync(anchorPath(), 'utf8');
    await rotate();
    await service.stop();
    writeFileSync(anchorPath(), before);
    await restart(service);
    expect((await service.operations.quarantine.get(administrator)).quarantined).toBe(false);
    expect((await verifyAuditLog(each(await exported()), former[0] as Verifier)).findings).toEqual([]);
  });
});

describe('of a log of another service', () => {
  const origin = 'dke/audit/test';
  const signer = (): NoteSigner & { readonly publicKey: Buffer; readonly verifier: Verifier } => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const raw = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url');
    return {
      publicKey: raw,
      sign: (text) => sign(null, Buffer.from(text), privateKey),
      verifier: parsed(verifierKey(origin, raw)),
    };
  };
  const [one, two, other] = [signer(), signer(), signer()];
  /** Records, with a checkpoint behind each: of these signers, which may name a rotation. */
  const logOf = (
    notes: readonly { readonly by: readonly NoteSigner[]; readonly rotation?: Checkpoint['rotation'] }[],
  ): string[] => {
    const tree = growTree();
    return notes.flatMap(({ by, rotation }, at) => {
      const record = canonicalJson({ kind: 'vault.created', sequence: at + 1 });
      tree.append(leafHash(Buffer.from(record)));
      const note = signedNote({ origin, size: at + 1, root: tree.root(), rotation }, ...by);
      return [record, canonicalJson({ checkpoint: note })];
    });
  };
  const rotation = { former: one.publicKey, next: two.publicKey };
  const findings = async (lines: readonly string[], key: Verifier) => (await verifyAuditLog(each(lines), key)).findings;

  test('a rotation that both keys have signed is accepted with either', async () => {
    const lines = logOf([{ by: [one] }, { by: [one, two], rotation }, { by: [two] }]);
    expect(await findings(lines, one.verifier)).toEqual([]);
    expect(await findings(lines, two.verifier)).toEqual([]);
  });
  test('the former key signs nothing after its rotation', async () => {
    const lines = logOf([{ by: [one] }, { by: [one, two], rotation }, { by: [two] }, { by: [one] }]);
    for (const key of [one.verifier, two.verifier]) expect(await findings(lines, key)).toHaveLength(2);
  });
  test('a rotation that only one of the keys has signed is refused', async () => {
    expect(await findings(logOf([{ by: [one] }, { by: [one], rotation }, { by: [two] }]), one.verifier)).not.toEqual(
      [],
    );
    expect(await findings(logOf([{ by: [one] }, { by: [two], rotation }, { by: [two] }]), one.verifier)).not.toEqual(
      [],
    );
  });
  test('a foreign key among the former ones is refused', async () => {
    const lines = logOf([{ by: [other] }, { by: [one] }, { by: [one, two], rotation }, { by: [two] }]);
    for (const key of [one.verifier, two.verifier])
      expect(await findings(lines, key)).toEqual([
        'line 2: the checkpoint is not signed with this key, nor with one that a rotation names',
      ]);
  });
});
