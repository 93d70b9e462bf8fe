// Every label under which the core and the service derive a key, make a MAC, or seal to a public
// key: one row each. A label is the `info` of HKDF or of HPKE, or the front of what a MAC covers,
// so that no value of one purpose is ever one of another. `npm run generate` writes the table of
// addon/FORMAT.md and addon/core/keys/labels.h from it; test/house/labels.test.ts finds uses that
// are not here.
//
// A key that callers can use, know or derive from never seals or authenticates what the service
// itself believes later (`callers` below is the one class of such keys: what is made with them is
// the caller's own data).

/** Whose the key is: which key the label's key follows from. */
export const keyClasses = {
  root: 'the root key, or the key of one of its providers',
  tenant: "a tenant's KEK: nodes share it, and an erasure run ends it",
  service: "one of the service's own keys, stored as a record of the service tenant",
  file: 'the random key of one file, sealed to recovery keys',
  recipient: 'an X25519 key pair; the public half is known to the sender',
  callers: 'a key that callers use: only their own data',
} as const;

interface LabelRow {
  readonly use: 'HKDF' | 'HMAC' | 'HPKE';
  readonly key: keyof typeof keyClasses;
  /** Its name in the C++ core, where the core uses it. */
  readonly core?: `k${string}`;
  readonly purpose: string;
  /** Who writes what is sealed, authenticated or derived from. */
  readonly writer: string;
  /** What makes an older value recognisable, or why that is not needed. */
  readonly freshness: string;
  /** What proves the content once it is authentic. */
  readonly parser: string;
}

export const labels = {
  'dke key record 1': {
    use: 'HKDF',
    key: 'tenant',
    core: 'kKeyRecord',
    purpose: 'seals key records; the root key and the keys of files seal records, too',
    writer: 'the service',
    freshness: "the record's version and epoch are bound; which is current, the row of the object says",
    parser: '`OpenRecord`',
  },
  'dke message key 1': {
    use: 'HKDF',
    key: 'tenant',
    purpose: 'the message key of an epoch, which outlives the KEK in memory only',
    writer: 'none: nothing of a caller is in it',
    freshness: 'the epoch of the KEK',
    parser: 'none',
  },
  'dke message part 2': {
    use: 'HKDF',
    key: 'tenant',
    core: 'kMessagePart',
    purpose: 'seals the state between two parts of a long message, which returns through the caller',
    writer: 'the service; the caller chooses data, key and parameters',
    freshness: 'none: a part that is done again gives the same bytes; the end of the message key ends it',
    parser: '`CipherState::Parse`, `MacState::Parse`',
  },
  'dke key recipient 1': {
    use: 'HKDF',
    key: 'tenant',
    purpose: 'the key pair to which clients seal keys of a tenant',
    writer: 'the service',
    freshness: 'the epoch of the KEK',
    parser: '`DeriveHpkeKey`',
  },
  'dke hedge 1': {
    use: 'HMAC',
    key: 'tenant',
    core: 'kHedge',
    purpose:
      'hedges random salts and nonces, so that two copies of a machine draw none twice: under the KEK of a record, or the key of an endpoint',
    writer: 'the core',
    freshness: 'a counter, random bytes, and the digest of the message',
    parser: 'none: it is never read back',
  },
  'dke xks 1': {
    use: 'HMAC',
    key: 'callers',
    core: 'kXksMessage',
    purpose: 'the key of one XKS ciphertext, from the key of the endpoint, which callers use through XKS only',
    writer: 'the service',
    freshness: 'a random salt for each ciphertext',
    parser: '`ReadXksBody`',
  },
  'dke sign-in hashes 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key that hashes invitations, recovery codes, and what a sign-in leaves in the database',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: the rows of the hashes have it',
    parser: 'none',
  },
  'dke sign-in attempts 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the authentication codes of sign-ins under way, with the roles that they give at their end',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: an attempt is of minutes, and used up by its use',
    parser: 'none',
  },
  'dke row codes 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the authentication codes of rows, since layout 4',
    writer: 'none: nothing of a caller is in it',
    freshness: 'the version of the row, and the sum over all rows',
    parser: 'none',
  },
  'dke row set elements 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of what each row adds to the sum over the rows',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: the head of the sum has it',
    parser: 'none',
  },
  'dke row set masks 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the masks of the sum, one for each version',
    writer: 'none: nothing of a caller is in it',
    freshness: 'the version of the sum',
    parser: 'none',
  },
  'dke row set heads 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the code of the stored sum',
    writer: 'none: nothing of a caller is in it',
    freshness: 'its version, which each checkpoint signs',
    parser: 'none',
  },
  'dke node changes 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the codes of what nodes tell one another',
    writer: 'none: nothing of a caller is in it',
    freshness: 'the number and id of the change, and those of the one before it',
    parser: 'none',
  },
  'dke request ids 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the ids of requests that are carried out once',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: a row of a day has it',
    parser: 'none',
  },
  'dke request contents 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the digests of the contents of such requests',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: a row of a day has it',
    parser: 'none',
  },
  'dke removed requests 1': {
    use: 'HKDF',
    key: 'service',
    purpose: 'the key of the code of what was removed from the request log and is not in the audit log yet',
    writer: 'none: nothing of a caller is in it',
    freshness: 'none: it is removed when it is told',
    parser: 'none',
  },
  'dke own probes 1': {
    use: 'HKDF',
    key: 'service',
    purpose: "the key of the marks of the service's own probes",
    writer: 'none: nothing of a caller is in it',
    freshness: 'its time: it is valid for a minute',
    parser: 'none',
  },
  'dke root provider 1': {
    use: 'HKDF',
    key: 'root',
    purpose:
      "a root provider's key from the secret of a hardware module, and the secret on its way from the child process (HPKE)",
    writer: 'the module, through a child process of the service',
    freshness: 'none: the wrapped root file names what it opens',
    parser: '`openWrapped` of server/adapters/roots/wrapped-file.ts',
  },
  'dke root key for another node': {
    use: 'HPKE',
    key: 'recipient',
    purpose: 'a new root key on its way to another node',
    writer: 'a node that proves the old root key',
    freshness: "the additional data bind the node and the root's epoch",
    parser: '`openParcel` of server/operations/root/root-parcels.ts',
  },
  'dke snapshot 1 rows': {
    use: 'HKDF',
    key: 'file',
    purpose: 'encrypts the rows of a snapshot',
    writer: 'the service that makes the snapshot; who has its key can write another',
    freshness: 'the signed closing',
    parser: 'server/adapters/archives/inspect-snapshot.ts',
  },
  'dke snapshot 1 units': {
    use: 'HKDF',
    key: 'file',
    purpose: 'seals the key of each unit of a snapshot',
    writer: 'the service that makes the snapshot; who has its key can write another',
    freshness: 'the signed closing',
    parser: '`OpenRecord`',
  },
  'dke snapshot key 1': {
    use: 'HPKE',
    key: 'recipient',
    purpose: "a snapshot's key, sealed to a recovery key",
    writer: 'the service that makes the snapshot',
    freshness: 'the additional data bind snapshot, tenant and recovery key',
    parser: '`HpkeOpenKey`: 32 bytes',
  },
  'dke snapshot opening 1': {
    use: 'HPKE',
    key: 'recipient',
    purpose: "a snapshot's key on its way from the owner of a recovery key to the service that opens it once",
    writer: 'the owner of a recovery key',
    freshness: 'the additional data bind snapshot and opening; the key pair is made for one opening',
    parser: '`HpkeOpenKey`: 32 bytes',
  },
  'dke backup 1': {
    use: 'HKDF',
    key: 'file',
    purpose: 'encrypts a backup of the whole service',
    writer: 'the service; who has the public recovery key can write another',
    freshness: 'the signed closing',
    parser: 'server/adapters/archives/backup-file.ts',
  },
  'dke backup key 1': {
    use: 'HPKE',
    key: 'recipient',
    purpose: "a backup's key, sealed to a recovery key",
    writer: 'anyone who has the public recovery key',
    freshness: 'the additional data bind backup and recovery key',
    parser: '`HpkeOpenKey`: 32 bytes',
  },
  'DKE session key 1': {
    use: 'HPKE',
    key: 'recipient',
    purpose: 'a key on its way from the service to an agent',
    writer: 'the service',
    freshness: "the recipient is the agent's own, in memory; the additional data bind the object's handle",
    parser: '`HpkeOpenKey`',
  },
  'DKE key for the service 1': {
    use: 'HPKE',
    key: 'recipient',
    purpose: 'a key on its way from an agent to the service',
    writer: 'the agent, for its caller',
    freshness: 'the recipient ends with its epoch; the additional data bind what the key becomes',
    parser: '`HpkeOpenKey`, then the checks of an import',
  },
} as const satisfies Readonly<Record<string, LabelRow>>;

export type Label = keyof typeof labels;
/** The row of a label, for what is generated. */
export const labelRows = (): readonly (readonly [Label, LabelRow])[] =>
  Object.entries(labels) as unknown as readonly (readonly [Label, LabelRow])[];

/** The bytes of a label. */
export const labelBytes = (label: Label): Buffer => Buffer.from(label, 'utf8');
