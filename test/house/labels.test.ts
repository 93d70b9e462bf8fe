// Every key that the core or the service derives, every HMAC and everything sealed with HPKE has a
// label of addon/labels.ts, or stands in the table below with the reason why it is none of ours. A
// file that begins to use one of these functions fails here until it is declared.
import { expect, test } from 'vitest';
import { type Label, labelRows, labels } from '../../addon/labels.ts';
import { rowJobs } from '../../server/base/row-jobs.ts';
import { files, read, withoutComments } from '../support/sources.ts';

/** `labels`: what the file uses them under. `outside`: why it needs none. */
type Declared = { readonly labels: readonly Label[] } | { readonly outside: string };

const declared: Readonly<Record<string, Declared>> = {
  'addon/core/digests/kdf.cc': { outside: 'defines HKDF; SP 800-108 is a mechanism of callers' },
  'addon/core/digests/mac.cc': { outside: 'defines the MACs' },
  'addon/core/frames/replay_cache.cc': { outside: 'a mechanism of callers, with their key' },
  'addon/core/public_key/agreement.cc': { outside: 'the KDF of ANSI X9.63, a mechanism of callers' },
  'addon/core/public_key/rsa_encryption.cc': { outside: 'implicit rejection, as draft-irtf-cfrg-rsa-guidance says' },
  'addon/core/digests/hedge.cc': { labels: ['dke hedge 1'] },
  'addon/core/wrapping/hpke.cc': { outside: 'defines HPKE, with the labels of RFC 9180' },
  'addon/core/wrapping/key_record.cc': { labels: ['dke key record 1'] },
  'addon/core/ciphers/service_seal.cc': { labels: ['dke message part 2'] },
  'addon/core/xks/sigv4_keys.cc': { outside: 'AWS Signature Version 4' },
  'addon/core/xks/xks_body.cc': { labels: ['dke xks 1'] },
  'addon/core.ts': { outside: 'hands calls on' },
  'server/base/sigv4-signer.ts': { outside: 'AWS Signature Version 4' },
  'server/cli/commands/snapshot.ts': { labels: ['dke snapshot key 1', 'dke snapshot opening 1'] },
  'server/adapters/crypto/key-ring.ts': { labels: ['dke sign-in attempts 1', ...rowJobs] },
  'server/adapters/crypto/message-keys.ts': { labels: ['dke message key 1'] },
  'server/adapters/crypto/own-keys.ts': { labels: ['dke sign-in hashes 1', 'dke sign-in attempts 1'] },
  'server/adapters/crypto/recipients.ts': { labels: ['dke key recipient 1', 'DKE key for the service 1'] },
  'server/adapters/crypto/token-hashes.ts': { outside: "the service's own keys, each for one purpose" },
  'server/operations/people/one-time-passwords.ts': { outside: 'RFC 6238' },
  'server/operations/root/root-parcels.ts': { labels: ['dke root key for another node'] },
  'server/operations/snapshots/openings.ts': { labels: ['dke snapshot opening 1'] },
  'server/operations/tde/make-token-key.ts': { labels: ['DKE session key 1'] },
  'server/operations/tde/read-token-object.ts': { labels: ['DKE session key 1'] },
  'server/operations/tde/use-token-key.ts': { outside: 'mechanisms of callers, with their keys' },
  'server/adapters/roots/hardware-child.ts': { labels: ['dke root provider 1'] },
  'server/adapters/roots/unlock-ways.ts': { labels: ['dke root provider 1'] },
  'server/adapters/sinks/webhook.ts': {
    outside: 'a signature that the receiver checks, with the key that it was given',
  },
  'server/adapters/archives/backup-file.ts': { labels: ['dke backup 1', 'dke backup key 1'] },
  'server/adapters/archives/write-snapshot.ts': {
    labels: ['dke snapshot 1 rows', 'dke snapshot 1 units', 'dke snapshot key 1'],
  },
};

const inCore =
  /\b(?:HkdfInto|HkdfKey|MacMessage|HMAC|EVP_Q_mac|HpkeSeal\w*|HpkeOpen\w*|EVP_MAC_init|EVP_KDF_derive|ServiceKey::Of)\(/;
const inService = /\bcreateHmac\(|\.(?:hkdf|mac)\(|\bmac(?:Of)?\(core\b|\b(?:hpke(?:Seal|Open)\w*|deriveHpkeKey)\(/;

const text = (path: string): string => withoutComments(read(path));
const using = [
  ...files(['addon/core'], '.cc').filter((path) => inCore.test(text(path))),
  ...files(['addon', 'server'], '.ts').filter((path) => !path.includes('/client/gen/') && inService.test(text(path))),
].filter((path) => path !== 'server/ports/crypto-core.ts');

test('HKDF, HMAC and HPKE are used only where this table says, under labels of the registry', () => {
  expect(using.filter((path) => declared[path] === undefined)).toEqual([]);
  expect(Object.keys(declared).filter((path) => !using.includes(path))).toEqual([]);
});

test('every label is used by a file that declares it', () => {
  const used = new Set(Object.values(declared).flatMap((each) => ('labels' in each ? each.labels : [])));
  expect(Object.keys(labels).filter((label) => !used.has(label as Label))).toEqual([]);
  const core = files(['addon/core', 'addon/binding'], '.cc').map(text).join('\n');
  const others = files(['server', 'provider/agent'], '.ts').map(text).join('\n');
  const unused = labelRows().filter(([label, row]) =>
    row.core === undefined ? !others.includes(`'${label}'`) : !core.includes(`Label::${row.core}`),
  );
  expect(unused.map(([label]) => label)).toEqual([]);
});

test('no label stands outside the registry', () => {
  // Texts that are hashed, signed or given to a module, and under which nothing is derived.
  const others = [
    'server/base/recovery-key.ts',
    'server/operations/snapshots/running-restore.ts',
    'server/adapters/roots/hardware-child.ts',
  ];
  const literal = /(?:Buffer\.from\(|\[\] = |string_view \w+ = )["'`](?:dke|DKE) /;
  const found = [...files(['addon/core'], '.cc', '.h'), ...files(['server'], '.ts')].filter((path) =>
    literal.test(text(path)),
  );
  expect(found.filter((path) => !others.includes(path))).toEqual([]);
});

test('a key that callers use seals nothing that the service believes', () => {
  const callers = labelRows().filter(([, { key }]) => key === 'callers');
  expect(callers.map(([label]) => label)).toEqual(['dke xks 1']);
});
