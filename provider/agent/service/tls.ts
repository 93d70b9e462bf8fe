// TLS to the service: the authorities to trust, and the client certificate of pkcs11.toml. The
// files are read with the rights of the configuration's user. The private key is read into a
// buffer, handed to OpenSSL and wiped.
//
// OpenSSL takes the files apart on the main thread, which serves every user, so that a user's files
// are short, what is known is not taken apart again, what is not is counted (user-files.ts), and a
// private key is of a kind that is read in time.
import { createHash } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { tell } from '../causes.ts';
import { ConfigError, type ProviderConfig } from '../settings/config.ts';
import { limits } from '../settings/limits.ts';
import { type FileUser, type FoundFile, type ReadOptions, UnsuitableFile, UserFiles } from '../settings/user-files.ts';

/** More than twice all authorities of a system: about 40 ms. */
const mostPemBytes = limits.pemFile.most;

const reasonOf = (error: unknown): string =>
  error instanceof UnsuitableFile ? error.message : ((error as NodeJS.ErrnoException).code ?? 'unknown error');

type FileCause = 'ca-file' | 'client-certificate';
type Named = 'ca' | 'cert' | 'key';
const causes = { ca: 'ca-file', cert: 'client-certificate', key: 'client-certificate' } as const satisfies Record<
  Named,
  FileCause
>;

/** A user must not use another user's key, nor one that others can read. */
const checkKey =
  ({ uid }: FileUser): NonNullable<ReadOptions['check']> =>
  ({ uid: owner, mode }) => {
    if (owner !== uid) throw new UnsuitableFile(`owned by uid ${owner}, not by uid ${uid}`);
    if ((mode & 0o077) !== 0)
      throw new UnsuitableFile(`mode ${(mode & 0o777).toString(8)} lets other users read it: chmod 600`);
  };

/** Object identifiers, in hexadecimal: RSA, RSASSA-PSS, elliptic curves, Ed25519, Ed448. */
const quickKeys: ReadonlySet<string> = new Set([
  '2a864886f70d010101',
  '2a864886f70d01010a',
  '2a8648ce3d0201',
  '2b6570',
  '2b6571',
]);
/** Other blocks that are beside a key: OpenSSL takes no key out of them. */
const otherBlocks: ReadonlySet<string> = new Set(['CERTIFICATE', 'EC PARAMETERS', 'RSA PRIVATE KEY', 'EC PRIVATE KEY']);
/** Base64 of the front of a PKCS #8 key, with its algorithm. */
const frontLength = 40;
const base64 = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');

/**
 * The algorithm of a PKCS #8 key (RFC 5208, 5): SEQUENCE { INTEGER of one byte, SEQUENCE { OBJECT
 * IDENTIFIER. Null: not one.
 */
const algorithmOf = (pem: Buffer): string | null => {
  const der = Buffer.alloc((frontLength / 4) * 3);
  try {
    if (pem.length < frontLength) return null;
    for (let at = 0; at < frontLength; at += 4) {
      const digits = [0, 1, 2, 3].map((place) => base64.indexOf(pem[at + place] as number));
      if (digits.includes(-1)) return null;
      der.writeUIntBE(
        digits.reduce((sum, digit) => sum * 64 + digit, 0),
        (at / 4) * 3,
        3,
      );
    }
    let at = 0;
    const enter = (): boolean => {
      const isThere = der[at] === 0x30;
      const length = der[at + 1] ?? 0;
      at += length < 0x80 ? 2 : 2 + (length & 0x7f);
      return isThere;
    };
    if (!enter() || der.readUInt16BE(at) !== 0x0201) return null;
    at += 3;
    if (!enter() || der[at] !== 0x06) return null;
    const end = at + 2 + (der[at + 1] ?? 0);
    return end > der.length ? null : der.toString('hex', at + 2, end);
  } catch {
    return null;
  } finally {
    der.fill(0);
  }
};

/**
 * Throws for a private key that OpenSSL may load slowly. Of a DSA or Diffie-Hellman key it computes
 * the public half: minutes for a key of 16 KiB, whose length nothing limits. Each block of the file
 * must be known to be another one, as OpenSSL would find it.
 */
const checkKind = (pem: Buffer): void => {
  const begin = '-----BEGIN ';
  for (let at = pem.indexOf(begin); at >= 0; at = pem.indexOf(begin, at + begin.length)) {
    // Not the rest of the file, which may have one line and many of these.
    const line = pem.subarray(at, at + 80);
    const end = line.indexOf('\n');
    const label = /^-----BEGIN ([A-Z ]{1,40})-----\s*$/.exec(line.toString('latin1', 0, Math.max(end, 0)))?.[1] ?? '';
    if (otherBlocks.has(label)) continue;
    const algorithm = label === 'PRIVATE KEY' ? algorithmOf(pem.subarray(at + end + 1)) : null;
    if (algorithm === null || !quickKeys.has(algorithm))
      throw new UnsuitableFile('not an RSA, ECDSA or EdDSA key without a passphrase');
  }
};

type Pem = Readonly<Partial<Record<Named, Buffer>>>;
type Paths = Readonly<Record<Named, string | null>>;

/** What work on a file throws becomes its refusal. */
const ofFile = <T>(paths: Paths, name: Named, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    throw new ConfigError(tell(causes[name], { file: paths[name] ?? '', error: reasonOf(error) }));
  }
};

/** First each file without the next, so that a fault is told of the file that has it. */
const build = (paths: Paths, { ca, cert, key }: Pem): SecureContext => {
  const make = (name: Named, options: SecureContextOptions): SecureContext =>
    ofFile(paths, name, () => createSecureContext(options));
  const trust = ca === undefined ? {} : { ca };
  if (cert === undefined || key === undefined) return make('ca', trust);
  make('cert', { ca: [], cert });
  ofFile(paths, 'key', () => checkKind(key));
  make('key', { ca: [], cert, key });
  return make('ca', { ...trust, cert, key });
};

/** What users have had taken apart and is in use: one for all configurations of an agent. */
export class TlsContexts {
  readonly #known = new Map<string, WeakRef<SecureContext>>();

  /** `name`: of what was read. `make` may throw. */
  of(uid: number, name: string, make: () => SecureContext): SecureContext {
    const key = `${uid} ${name}`;
    const known = this.#known.get(key)?.deref();
    if (known !== undefined) return known;
    const made = make();
    for (const [each, context] of this.#known) if (context.deref() === undefined) this.#known.delete(each);
    this.#known.set(key, new WeakRef(made));
    return made;
  }
}

/**
 * All files, or the failure of the first one by name: which read fails first is chance. Key bytes
 * of the others are wiped.
 */
const allRead = async <T extends { readonly bytes?: Buffer | undefined } | null>(
  reads: readonly Promise<T>[],
): Promise<T[]> => {
  const settled = await Promise.allSettled(reads);
  const failed = settled.find((each) => each.status === 'rejected');
  const read = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  if (failed === undefined) return read;
  for (const each of read) each?.bytes?.fill(0);
  throw failed.reason;
};

/** The files of one configuration, as they are now. */
export class TlsFiles {
  readonly #files: UserFiles;
  readonly #contexts: TlsContexts;
  readonly #paths: Paths;
  readonly #user: FileUser;
  #states = '';
  #context: SecureContext | null = null;
  /** The sum of the sizes of the PEM files that were read last, in bytes. */
  bytes = 0;

  constructor(
    { caFile, clientCertificate, user }: Pick<ProviderConfig, 'caFile' | 'clientCertificate' | 'user'>,
    files = new UserFiles(),
    contexts = new TlsContexts(),
  ) {
    this.#files = files;
    this.#contexts = contexts;
    this.#paths = { ca: caFile, cert: clientCertificate?.certificate ?? null, key: clientCertificate?.key ?? null };
    this.#user = user;
  }

  /** Throws ConfigError. */
  async current(): Promise<SecureContext> {
    const names = Object.keys(causes) as Named[];
    // The last known state of each file: all files are read again when one has changed.
    const known = this.#states.split(' ');
    let found = await allRead(names.map((name, at) => this.#read(name, known[at])));
    if (this.#context !== null && found.every((each) => each === null || each.bytes === undefined))
      return this.#context;
    if (this.#context !== null) found = await allRead(names.map((name) => this.#read(name)));
    const pem = Object.fromEntries(
      names.flatMap((name, at) => (found[at]?.bytes === undefined ? [] : [[name, found[at].bytes]])),
    ) as Pem;
    try {
      return this.#take(pem, found.map((each) => each?.state ?? '').join(' '));
    } finally {
      pem.key?.fill(0);
    }
  }

  /**
   * Like `current`, but files that cannot be used (half written, perhaps) change nothing once there
   * is a context.
   */
  async currentOrLast(): Promise<SecureContext> {
    try {
      return await this.current();
    } catch (error) {
      if (this.#context === null) throw error;
      return this.#context;
    }
  }

  #take(pem: Pem, states: string): SecureContext {
    const digest = createHash('sha256');
    let bytes = 0;
    for (const each of Object.values(pem)) {
      digest.update(`${each.length} `).update(each);
      bytes += each.length;
    }
    const context = this.#contexts.of(this.#user.uid, digest.digest('base64'), () => {
      const first = this.#paths.ca === null ? 'cert' : 'ca';
      ofFile(this.#paths, first, () => this.#files.count(this.#user, 'pem', bytes));
      return build(this.#paths, pem);
    });
    this.#context = context;
    this.#states = states;
    this.bytes = bytes;
    return context;
  }

  async #read(name: Named, known = ''): Promise<FoundFile | null> {
    const file = this.#paths[name];
    if (file === null) return null;
    let found: FoundFile;
    try {
      const check = name === 'key' ? { check: checkKey(this.#user) } : {};
      found = await this.#files.read(this.#user, file, { most: mostPemBytes, follow: true, known, ...check });
    } catch (error) {
      throw new ConfigError(tell(causes[name], { file, error: reasonOf(error) }));
    }
    if (found.bytes !== undefined && !found.bytes.includes('-----BEGIN '))
      throw new ConfigError(tell(causes[name], { file, error: 'no PEM' }));
    return found;
  }
}
