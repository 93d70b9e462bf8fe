// What the parts of one instance share: its directory and control file, its processes, and what it
// has in memory while it runs. keystores.ts, master-keys.ts, data-files.ts, pluggable.ts,
// parameters.ts and recovery.ts act on it; instance.ts dispatches.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import {
  type Container,
  type ControlFile,
  type KeystoreKind,
  newControlFile,
  readControlFile,
  writeControlFile,
} from './control-file.ts';
import { good, OraError } from './ora-error.ts';
import type { Answer, DatabaseProcess, Given, StepName } from './process.ts';
import { type DatabaseHost, type OpenKeystores, ProcessTable } from './process-table.ts';
import { newestRelease, type Profile, type Release } from './profile.ts';
import type { Reach } from './statements.ts';

export interface InstanceOptions {
  readonly name: string;
  readonly directory: string;
  readonly profile: Profile;
  /** The profile's newest when absent. */
  readonly release?: string;
  readonly host: DatabaseHost;
  /** A container database; default: that of the profile. */
  readonly cdb?: boolean;
  /** The storage of a cluster: that of its first instance. */
  readonly shares?: ControlFile;
}

export interface Session {
  container: number;
  readonly process: DatabaseProcess;
}

export const secretName = 'HSM_PASSWORD';
/** After the content of a local cwallet.sso: the host that created it. */
export const localMark = ({ base }: DatabaseHost): string => `\nLOCAL ${base}\n`;
export const now = (): string => new Date().toISOString();
export const containerReach = (statement: { readonly container: Reach }, all: readonly Container[], one: Container) =>
  statement.container === 'all' ? all : [one];

export class Core {
  readonly name: string;
  readonly directory: string;
  readonly profile: Profile;
  readonly release: string;
  readonly host: DatabaseHost;
  readonly control: ControlFile;
  readonly table: ProcessTable;

  state: 'down' | 'mounted' | 'open' = 'down';
  open: OpenKeystores = {};
  /** Containers whose keystore was opened. */
  openIn = new Set<number>();
  order: readonly KeystoreKind[] = [];
  session: Session | undefined;
  foregrounds = 0;
  clock = 0;
  /** Whether there are rows that no block has yet. */
  lazy = false;
  /** The keys that gen0 has taken up, by container, and the one that is next. */
  heartbeats: { keys: Map<number, string>; failures: number; next: number } = { keys: new Map(), failures: 0, next: 0 };
  /** The parameters that are read when the instance starts. */
  static: Readonly<Record<string, string>> = {};
  /** What RMAN's catalog has: the folder of the one backup. */
  backup: string | null = null;

  /** One of several of a cluster: the database may be open in another one. */
  readonly isMember: boolean;

  constructor(options: InstanceOptions) {
    this.isMember = options.shares !== undefined;
    this.name = options.name;
    this.directory = options.directory;
    this.profile = options.profile;
    this.release = options.release ?? newestRelease(options.profile);
    this.host = options.host;
    for (const folder of ['', 'wallet/tde', 'redo']) mkdirSync(join(this.directory, folder), { recursive: true });
    const cdb = options.cdb ?? options.profile.containers.value;
    if (cdb && !options.profile.containers.value) throw new OraError('ORA-65090');
    this.control = options.shares ?? readControlFile(this.path('control')) ?? newControlFile(this.name, cdb);
    this.save();
    this.table = new ProcessTable({
      instance: this.name,
      host: this.host,
      profile: this.path('profile'),
      wallet: () => this.wallet,
      automatic: () => this.automatic,
      location: () => this.control.parameters.PKCS11_LIBRARY_LOCATION ?? null,
      alert: (text) => this.alert(text),
    });
  }

  get of(): Release {
    const release = this.profile.releases[this.release];
    if (release === undefined) throw new Error(`${this.profile.name} has no release ${this.release}`);
    return release;
  }

  path(name: string): string {
    return join(this.directory, name);
  }
  /**
   * A place that a statement or a file names: what is /opt/oracle/admin/<database> on a host is the
   * database's directory here.
   */
  at(place: string): string {
    const here = place.replace(/^\/opt\/oracle\/admin(\/\w+)?\/wallet/, 'wallet');
    return isAbsolute(here) ? here : this.path(here);
  }
  sqlnet(): string {
    return existsSync(this.path('sqlnet.ora')) ? readFileSync(this.path('sqlnet.ora'), 'utf8') : '';
  }
  /**
   * Where the software keystore belongs: WALLET_ROOT/tde, else the directory of sqlnet.ora, else
   * the one of the installation.
   */
  get walletDirectory(): string {
    const root = this.static.WALLET_ROOT;
    if (root !== undefined) return join(this.at(root), 'tde');
    const [, named] = /DIRECTORY\s*=\s*([^\s)]+)/.exec(this.sqlnet()) ?? [];
    return this.at(named ?? 'wallet');
  }
  get wallet(): string {
    return join(this.walletDirectory, 'ewallet.p12');
  }
  get automatic(): string {
    return join(this.walletDirectory, 'cwallet.sso');
  }
  redo(sequence = this.control.redo.current): string {
    return this.path(`redo/${sequence}.log`);
  }
  save(): void {
    writeControlFile(this.path('control'), this.control);
  }
  alert(text: string): void {
    appendFileSync(this.path(`alert_${this.name}.log`), `${now()} ${text}\n`);
  }

  process(role: string): DatabaseProcess {
    return this.table.get(role);
  }
  do(by: DatabaseProcess, step: StepName, given: Given = {}): Promise<Answer> {
    return good(this.table.step(by, step, given));
  }
  attach(by: DatabaseProcess): Promise<void> {
    return this.table.attach(by, this.open);
  }

  container(session: Session): Container {
    const found = this.control.containers.find(({ id }) => id === session.container);
    if (found === undefined) throw new OraError('ORA-65011');
    return found;
  }
  containerNamed(name: string): Container {
    const found = this.control.containers.find((each) => each.name === name);
    if (found === undefined) throw new OraError('ORA-65011', name);
    return found;
  }

  /** Forgets what is in memory. */
  down(): void {
    this.table.clear();
    this.open = {};
    this.openIn.clear();
    this.session = undefined;
    this.lazy = false;
    this.state = 'down';
    this.forgetHeartbeats();
  }
  forgetHeartbeats(): void {
    this.heartbeats = { keys: new Map(), failures: 0, next: 0 };
  }
}
