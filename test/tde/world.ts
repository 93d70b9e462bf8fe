// Where the databases of a scenario live: hosts with a base directory that holds one library, and
// groups of applications that share master keys. Ours is the real service with the agent that the
// library starts; the reference is SoftHSM2, where a group is a token.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { library as ownLibrary } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';
import { makeReferenceToken, softhsm, type tokenNames } from '../support/token.ts';
import { placeAgent, placeFile } from './library.ts';
import type { DatabaseHost } from './process-table.ts';

/** What is in IDENTIFIED BY. It is searched for in every file, as the rows are. */
export const pin = 'keystore-pin-canary-2f71c0';
/** How every row begins. */
export const canary = 'plaintext-canary-9d41e3';

export interface HostGroup {
  /**
   * A host of its own, with a library and an application of this group; `like` shares another
   * host's application.
   */
  host(name: string, like?: DatabaseHost): Promise<DatabaseHost>;
  /** Ours only: the id of the application of a host. */
  applicationOf(host: DatabaseHost): string;
}

export interface World {
  readonly name: (typeof tokenNames)[number];
  readonly folder: string;
  /** Ours only. */
  readonly site: Site | undefined;
  group(name: string): Promise<HostGroup>;
  end(): Promise<void>;
}

/**
 * Our library in the layout of an installation, with the program next to it that starts the agent.
 */
export const libraryOf = (base: string): string => join(base, 'hsm/dke/1.0/libdke_pkcs11.so');
export const nextLibrary = resolve(import.meta.dirname, '../../build/tde/next/libdke_pkcs11.so');

const ownWorld = async (): Promise<World> => {
  const site = await startSite();
  const applications = new Map<string, string>();
  return {
    name: 'DKE',
    folder: site.folder,
    site,
    group: async (group) => {
      const id = await createGroup(site.api, group);
      return {
        host: async (name, like) => {
          const base = join(site.folder, 'hosts', name);
          placeFile(ownLibrary, libraryOf(base));
          placeAgent(ownLibrary, libraryOf(base));
          const traces = join(site.folder, 'traces', name);
          mkdirSync(traces, { recursive: true });
          if (like !== undefined) return { ...like, base, traces };
          const application = await registerApplication(site.api, name, id);
          const config = site.config(name, application, 'log_level = "debug"\n');
          applications.set(config, application.application.id);
          return {
            base,
            traces,
            environment: {
              DKE_PKCS11_CONF: config,
              DKE_PKCS11_SOCKET: site.socket,
              DKE_AGENT_LOG_DIR: site.logDirectory,
            },
          };
        },
        applicationOf: ({ environment }) => applications.get(environment.DKE_PKCS11_CONF ?? '') ?? '',
      };
    },
    end: () => site.end(),
  };
};

const referenceWorld = async (): Promise<World> => {
  if (softhsm === undefined) throw new Error('SoftHSM2 is not installed (package softhsm2)');
  const library = softhsm;
  const folder = mkdtempSync(join(tmpdir(), 'dke-tde-'));
  return {
    name: 'SoftHSM2',
    folder,
    site: undefined,
    group: async (group) => {
      const tokens = join(folder, 'groups', group);
      mkdirSync(tokens, { recursive: true });
      const environment = makeReferenceToken(tokens, 'tde', pin);
      return {
        host: async (name) => {
          const base = join(folder, 'hosts', name);
          const traces = join(folder, 'traces', name);
          mkdirSync(traces, { recursive: true });
          placeFile(library, join(base, 'hsm/softhsm/2.6/libsofthsm2.so'));
          return { base, traces, environment };
        },
        applicationOf: () => '',
      };
    },
    end: async () => rmSync(folder, { recursive: true, force: true }),
  };
};

export const startWorld = { DKE: ownWorld, SoftHSM2: referenceWorld } as const;

/** The files below a folder that hold any of the texts. */
export const filesHolding = (folder: string, ...needles: readonly string[]): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = readFileSync(path);
      return needles.some((needle) => bytes.includes(needle));
    });
