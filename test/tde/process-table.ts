// The processes of one instance: started under the names that the database gives them, and let at
// the keystores that are open as soon as they need them.
import { join } from 'node:path';
import { findLibrary } from './library.ts';
import { good, OraError } from './ora-error.ts';
import { type Answer, type DatabaseProcess, type Given, type StepName, startDatabaseProcess } from './process.ts';

/**
 * A machine that databases run on: its base directory for libraries, and the environment that an
 * instance starts with.
 */
export interface DatabaseHost {
  readonly base: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Another copy of the process's program, for example one with the setgid bit. */
  readonly program?: string;
  /** What runs each process: the command that enters another network, or becomes another user. */
  readonly through?: readonly string[];
  /** Where the traces of its processes go. */
  readonly traces: string;
}

/** What an instance has in memory while a keystore is open. */
export interface OpenKeystores {
  /** The PIN, or that it is in the wallet. */
  /** `store`: a wallet of its own, which has the secret. */
  H?: { readonly pin: string } | { readonly secret: string; readonly store?: string };
  F?: { readonly password: string } | { readonly automatic: true };
}

export interface ProcessTableOptions {
  readonly instance: string;
  readonly host: DatabaseHost;
  /** Paths: of the profile as the driver reads it, of ewallet.p12, of cwallet.sso. */
  readonly profile: string;
  readonly wallet: () => string;
  readonly automatic: () => string;
  /** PKCS11_LIBRARY_LOCATION. */
  readonly location: () => string | null;
  readonly alert: (text: string) => void;
}

export class ProcessTable {
  readonly #options: ProcessTableOptions;
  #processes = new Map<string, DatabaseProcess>();
  /** What each process has open. */
  #attached = new Map<DatabaseProcess, string>();
  /** The library of each. */
  #loaded = new Map<DatabaseProcess, string>();
  beforeStep: (step: StepName) => Promise<void> = async () => undefined;

  constructor(options: ProcessTableOptions) {
    this.#options = options;
  }

  start(role: string, through = this.#options.host.through): DatabaseProcess {
    const { instance, host, profile } = this.#options;
    const started = startDatabaseProcess({
      role,
      name: `ora_${role}_${instance}`,
      profile,
      trace: join(host.traces, `${instance}.${role}`),
      environment: host.environment,
      program: host.program,
      through,
    });
    this.#processes.set(role, started);
    return started;
  }

  get(role: string): DatabaseProcess {
    const found = this.#processes.get(role);
    if (found === undefined) throw new OraError('ORA-01034', role);
    return found;
  }
  all(): readonly DatabaseProcess[] {
    return [...this.#processes.values()];
  }
  forget(gone: DatabaseProcess): void {
    this.#processes.delete(gone.role);
    this.#attached.delete(gone);
    this.#loaded.delete(gone);
  }
  clear(): void {
    for (const each of this.all()) this.forget(each);
  }

  /** One step, whose answer may be a refusal. */
  async step(by: DatabaseProcess, step: StepName, given: Given = {}): Promise<Answer> {
    await this.beforeStep(step);
    return await by.step(step, given);
  }

  /** Gives a process the open keystores: the wallet's content, a session with the token. */
  async attach(by: DatabaseProcess, open: OpenKeystores): Promise<void> {
    const wanted = JSON.stringify(open);
    if (this.#attached.get(by) === wanted) return;
    const { wallet, automatic } = this.#options;
    const { F, H } = open;
    const openToken = async (): Promise<void> => {
      if (H === undefined) return;
      await this.#load(by);
      // The process that serves statements queries the capability once for each instance.
      const probe = by.role === 'fg0';
      await good(this.step(by, 'open', { ...('pin' in H ? { pin: H.pin } : { secret: H.secret }), probe }));
    };
    // A process has one wallet open at a time.
    const store = H !== undefined && 'store' in H ? H.store : undefined;
    if (store !== undefined) {
      await good(this.step(by, 'wallet-open', { path: store }));
      await openToken();
    }
    if (F !== undefined)
      await good(
        this.step(
          by,
          'wallet-open',
          'password' in F ? { path: wallet(), password: F.password } : { path: automatic() },
        ),
      );
    if (store === undefined) await openToken();
    this.#attached.set(by, wanted);
  }

  async #load(by: DatabaseProcess): Promise<void> {
    if (this.#loaded.has(by)) return;
    const { host, location, alert } = this.#options;
    const library = findLibrary(host.base, location(), process.getuid?.() ?? 0);
    const { manufacturer, description, version } = await good(this.step(by, 'load', { library }));
    this.#loaded.set(by, library);
    alert(`${by.role}: PKCS11 library loaded: ${manufacturer}, ${description}, version ${version}`);
  }

  /** The processes that have loaded a library. */
  libraries(): readonly (readonly [DatabaseProcess, string])[] {
    return [...this.#loaded];
  }

  /** Closes what every process has open, as far as it answers. */
  async detachAll(): Promise<void> {
    for (const each of this.#attached.keys()) await this.step(each, 'close').catch(() => undefined);
    this.#attached.clear();
  }
}
