// A token under test, as a program finds it: the path of a library and the environment that the
// library reads. Ours is the built library with the agent that it starts on its own and the real
// service; the reference is Debian's SoftHSM2 with a token of its own. Everything of a token lives
// in one folder, which `end` removes.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGroup, registerApplication } from './console-api.ts';
import { library } from './pkcs11-host.ts';
import { startSite } from './site.ts';
import { inLongTier } from './tiers.ts';
import { installed } from './tools.ts';

export interface Token {
  readonly name: 'DKE' | 'SoftHSM2';
  /** The library's path. */
  readonly module: string;
  readonly label: string;
  /** The user's PIN. Ours takes any. */
  readonly pin: string;
  /** Environment variables for the library, in addition to those of the tests. */
  readonly environment: NodeJS.ProcessEnv;
  /** For files of the test; removed at the end. */
  readonly folder: string;
  end(): Promise<void>;
}

export const softhsm = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so',
  '/usr/lib64/pkcs11/libsofthsm2.so',
].find(existsSync);

/**
 * Writes the configuration of a fresh SoftHSM2 token and creates the token; returns the environment
 * that selects it.
 */
export const makeReferenceToken = (folder: string, label: string, pin: string): NodeJS.ProcessEnv => {
  const config = join(folder, 'softhsm2.conf');
  mkdirSync(join(folder, 'tokens'));
  writeFileSync(
    config,
    `directories.tokendir = ${join(folder, 'tokens')}\nobjectstore.backend = file\nlog.level = ERROR\n`,
  );
  const environment = { SOFTHSM2_CONF: config };
  execFileSync('softhsm2-util', ['--init-token', '--free', '--label', label, '--pin', pin, '--so-pin', '12345678'], {
    env: { ...process.env, ...environment },
    stdio: 'ignore',
  });
  return environment;
};

/** SoftHSM2. Fails when it is not installed. */
export const startReferenceToken = async (label = 'tool'): Promise<Token> => {
  if (softhsm === undefined) throw new Error('SoftHSM2 is not installed (package softhsm2)');
  const folder = mkdtempSync(join(tmpdir(), 'dke-reference-'));
  return {
    name: 'SoftHSM2',
    module: softhsm,
    label,
    pin: '123456',
    environment: makeReferenceToken(folder, label, '123456'),
    folder,
    end: async () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** Our library, and a fresh service with one application that has the label's name. */
export const startOwnToken = async (label = 'tool'): Promise<Token> => {
  const site = await startSite();
  const application = await registerApplication(site.api, label, await createGroup(site.api, label));
  return {
    name: 'DKE',
    module: library,
    label,
    pin: '123456',
    environment: {
      DKE_PKCS11_CONF: site.config(label, application),
      DKE_PKCS11_SOCKET: site.socket,
      DKE_AGENT_LOG_DIR: site.logDirectory,
    },
    folder: site.folder,
    end: () => site.end(),
  };
};

export const startTokens = { DKE: startOwnToken, SoftHSM2: startReferenceToken } as const;
export const tokenNames = ['DKE', 'SoftHSM2'] as const;
/** Tokens that this machine can start in this tier. */
export const presentTokens = tokenNames.filter(
  (name) =>
    name === 'DKE' ||
    (inLongTier('clients, tde, databases/jce, conformance/reference: SoftHSM2') &&
      installed('softhsm2', 'softhsm2-util')),
);
