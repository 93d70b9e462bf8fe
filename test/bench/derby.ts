// Apache Derby's inserts a second with every page and log record encrypted: through the library
// next to SoftHSM2, each by OpenJDK's own SunPKCS11 and by our JCA provider, and by Java's own AES
// as the floor. The same program, one JVM a measurement, interleaved rounds.

import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { derbyPresent, jars } from '../support/java.ts';
import type { Peer } from './peers.ts';
import { median } from './statistics.ts';

const run = promisify(execFile);
const inner = '--add-exports=jdk.crypto.cryptoki/sun.security.pkcs11.wrapper=ALL-UNNAMED';
const algorithm = 'encryptionAlgorithm=AES/CBC/NoPadding';
/**
 * Before so many, Java's compiler uses a CPU that the agent needs: this measures a database that
 * has run for some seconds.
 */
const inserts = { warmUp: 200_000, measured: 40_000 };

export interface DerbyFigure {
  readonly perSecond: number;
  readonly medianNs: number;
  readonly p99Ns: number;
}

/** Figures for Java alone, and for each provider over a token, by the token's name. */
export interface DerbyFigures {
  readonly java: DerbyFigure;
  readonly sunPkcs11: ReadonlyMap<string, DerbyFigure>;
  readonly dkeJce: ReadonlyMap<string, DerbyFigure>;
}

interface Candidate {
  readonly options: readonly string[];
  /** What follows in the JDBC URL. */
  readonly attributes: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** A key of this measurement alone. */
const anyKey = '00112233445566778899aabbccddeeff';

// Derby does not log in, and a key in SoftHSM2 is private by default.
const notPrivate = 'attributes(*, CKO_SECRET_KEY, *) = {\n CKA_PRIVATE = false\n}\n';

const withSunPkcs11 = (peer: Peer, folder: string): Candidate => {
  const name = peer.name.replace(/\W/g, '');
  writeFileSync(
    join(folder, `${name}.cfg`),
    `name = ${name}\nlibrary = ${peer.library}\nslotListIndex = 0\n${notPrivate}`,
  );
  writeFileSync(join(folder, `${name}.security`), `security.provider.13=SunPKCS11 ${join(folder, `${name}.cfg`)}\n`);
  return {
    options: [`-Djava.security.properties=${join(folder, `${name}.security`)}`],
    attributes: `;dataEncryption=true;encryptionProvider=sun.SunPKCS11-${name};${algorithm};encryptionKey=${anyKey}`,
    environment: peer.environment,
  };
};

/** Its master key has one label, so it is created once for a token. */
const withDkeJce = (peer: Peer, folder: string): Candidate => {
  const keys = join(folder, `keys-${peer.name.replace(/\W/g, '')}`);
  const options = [inner, `-Ddke.library=${peer.library}`, `-Ddke.pin=${peer.pin}`, `-Ddke.keys=${keys}`];
  const command = (...args: string[]): string =>
    execFileSync('java', [...options, '-jar', jars.jce, ...args], {
      env: { ...process.env, ...peer.environment },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).trim();
  const master = 'bench of Derby';
  command('new-master', master);
  const reference = command('new', keys, master);
  return {
    options,
    attributes: `;dataEncryption=true;encryptionProvider=dke.jce.DKE;${algorithm};encryptionKey=${reference}`,
    environment: peer.environment,
  };
};

/** Undefined, with the reason printed, where Derby or a JDK is missing. */
export const measureDerby = async (peers: readonly Peer[], rounds: number): Promise<DerbyFigures | undefined> => {
  if (!derbyPresent()) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'dke-bench-derby-'));
  try {
    execFileSync('javac', ['-d', folder, join(import.meta.dirname, 'DerbyInserts.java')]);
    const java: Candidate = {
      options: [],
      attributes: `;dataEncryption=true;${algorithm};encryptionKey=${anyKey}`,
      environment: {},
    };
    const candidates = new Map<string, Candidate>([['java', java]]);
    for (const peer of peers) {
      candidates.set(`SunPKCS11 ${peer.name}`, withSunPkcs11(peer, folder));
      candidates.set(`dke-jce ${peer.name}`, withDkeJce(peer, folder));
    }
    const samples = new Map<string, DerbyFigure[]>([...candidates.keys()].map((name) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const [name, { options, attributes, environment }] of candidates) {
        const home = join(folder, 'home');
        mkdirSync(home);
        const path = [jars.derby, jars.jce, folder].join(':');
        const counts = [String(inserts.warmUp), String(inserts.measured)];
        const args = [...options, '-cp', path, 'DerbyInserts', join(home, 'db'), attributes, ...counts];
        const { stdout } = await run('java', args, { env: { ...process.env, ...environment }, cwd: home });
        samples.get(name)?.push(JSON.parse(stdout) as DerbyFigure);
        rmSync(home, { recursive: true });
      }
    }
    const figure = (name: string): DerbyFigure => {
      const own = samples.get(name) ?? [];
      const middle = (field: keyof DerbyFigure): number => median(own.map((sample) => sample[field]));
      return { perSecond: middle('perSecond'), medianNs: middle('medianNs'), p99Ns: middle('p99Ns') };
    };
    const of = (provider: string): ReadonlyMap<string, DerbyFigure> =>
      new Map(peers.map(({ name }) => [name, figure(`${provider} ${name}`)]));
    return { java: figure('java'), sunPkcs11: of('SunPKCS11'), dkeJce: of('dke-jce') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
