// One instance of a simulated database: its processes, its directory, and the effect of each statement. The order of the calls is
// decided here, by the profile; the processes (driver/) make them. What an instance keeps in memory, such as the PIN of the open
// keystore, dies with it.
//
// Not modelled: SQL beyond statements.ts, buffer cache and undo, isolated keystores of pluggable databases, RAC, Data Pump.
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  type Container,
  type ControlFile,
  type DataFile,
  type KeystoreKind,
  newControlFile,
  type Purpose,
  readControlFile,
  writeControlFile,
} from './control-file.ts';
import { copyDatabase } from './copy-database.ts';
import { findLibrary } from './library.ts';
import { errorOf, good, OraError } from './ora-error.ts';
import { type Archive, readArchive, writeArchive } from './pdb-file.ts';
import type { Answer, DatabaseProcess, Given, StepName } from './process.ts';
import { type DatabaseHost, type OpenKeystores, ProcessTable } from './process-table.ts';
import { type MasterKeyRole, mechanismNumber, newestRelease, type Profile, writeDriverProfile } from './profile.ts';
import { type Backup, parseStatement, type Reach, type Statement } from './statements.ts';
import { encryptedColumns, keyRows, type Row, walletRow } from './views.ts';

export interface InstanceOptions {
  readonly name: string;
  readonly directory: string;
  readonly profile: Profile;
  /** The profile's newest when absent. */
  readonly release?: string;
  readonly host: DatabaseHost;
  /** A container database; default: that of the profile. */
  readonly cdb?: boolean;
}

interface Session {
  container: number;
  readonly process: DatabaseProcess;
}
export interface Connection {
  readonly process: DatabaseProcess;
  execute(sql: string): Promise<readonly Row[]>;
  end(): Promise<void>;
}

const secretName = 'HSM_PASSWORD';
/** After the content of a local cwallet.sso: the host that created it. */
const localMark = ({ base }: DatabaseHost): string => `\nLOCAL ${base}\n`;
const now = (): string => new Date().toISOString();
const containerReach = (statement: { readonly container: Reach }, all: readonly Container[], one: Container) =>
  statement.container === 'all' ? all : [one];

export class Instance {
  readonly name: string;
  readonly directory: string;
  readonly profile: Profile;
  readonly release: string;
  readonly host: DatabaseHost;
  readonly control: ControlFile;

  #state: 'down' | 'mounted' | 'open' = 'down';
  #open: OpenKeystores = {};
  /** Containers whose keystore was opened. */
  #openIn = new Set<number>();
  #order: readonly KeystoreKind[] = [];
  readonly #table: ProcessTable;
  #session: Session | undefined;
  #foregrounds = 0;
  #clock = 0;
  /** Whether there are rows that no block has yet. */
  #lazy = false;
  #heartbeats = { key: null as string | null, failures: 0 };

  constructor(options: InstanceOptions) {
    this.name = options.name;
    this.directory = options.directory;
    this.profile = options.profile;
    this.release = options.release ?? newestRelease(options.profile);
    this.host = options.host;
    for (const folder of ['', 'wallet', 'redo']) mkdirSync(join(this.directory, folder), { recursive: true });
    const cdb = options.cdb ?? options.profile.containers.value;
    if (cdb && !options.profile.containers.value) throw new OraError('ORA-65090');
    this.control = readControlFile(this.#path('control')) ?? newControlFile(this.name, cdb);
    this.#save();
    this.#table = new ProcessTable({
      instance: this.name,
      host: this.host,
      profile: this.#path('profile'),
      wallet: this.#wallet,
      automatic: this.#automatic,
      location: () => this.control.parameters.PKCS11_LIBRARY_LOCATION ?? null,
      alert: (text) => this.#alert(text),
    });
  }

  get state(): 'down' | 'mounted' | 'open' {
    return this.#state;
  }

  #path(name: string): string {
    return join(this.directory, name);
  }
  get #wallet(): string {
    return this.#path('wallet/ewallet.p12');
  }
  get #automatic(): string {
    return this.#path('wallet/cwallet.sso');
  }
  #redo(sequence = this.control.redo.current): string {
    return this.#path(`redo/${sequence}.log`);
  }
  #save(): void {
    writeControlFile(this.#path('control'), this.control);
  }
  #alert(text: string): void {
    appendFileSync(this.#path(`alert_${this.name}.log`), `${now()} ${text}\n`);
  }
  alertLog(): string {
    return readFileSync(this.#path(`alert_${this.name}.log`), 'utf8');
  }

  // ---- processes -----------------------------------------------------------------------------------------------------------

  #process(role: string): DatabaseProcess {
    return this.#table.get(role);
  }
  processes(): readonly DatabaseProcess[] {
    return this.#table.all();
  }
  #do(by: DatabaseProcess, step: StepName, given: Given = {}): Promise<Answer> {
    return good(this.#table.step(by, step, given));
  }
  #attach(by: DatabaseProcess): Promise<void> {
    return this.#table.attach(by, this.#open);
  }
  /** Called before each step of a statement; a scenario lets the instance die here. */
  set beforeStep(work: (step: StepName) => Promise<void>) {
    this.#table.beforeStep = work;
  }

  /** Another foreground, as a client's connection brings it. */
  connect(): Connection {
    if (this.#state !== 'open') throw new OraError('ORA-01034');
    this.#foregrounds += 1;
    const started = this.#table.start(`fg${this.#foregrounds}`);
    const session: Session = { container: 1, process: started };
    return {
      process: started,
      execute: (sql) => this.#execute(sql, session),
      end: async () => {
        await started.stop();
        this.#table.forget(started);
      },
    };
  }
  /** SIGKILL to every process at once. */
  async die(): Promise<void> {
    this.#state = 'down';
    await Promise.all(this.processes().map((each) => each.kill()));
    this.#down();
  }
  #down(): void {
    this.#table.clear();
    this.#open = {};
    this.#openIn.clear();
    this.#session = undefined;
    this.#lazy = false;
    this.#state = 'down';
    this.#heartbeats = { key: null, failures: 0 };
  }

  // ---- configuration -------------------------------------------------------------------------------------------------------

  /** sqlnet.ora, which releases up to 18c read when they start. */
  writeSqlnet(value: string): void {
    writeFileSync(this.#path('sqlnet.ora'), `ENCRYPTION_WALLET_LOCATION = ${value}\n`);
  }

  #readConfiguration(): readonly KeystoreKind[] {
    const way = this.profile.releases[this.release]?.wallet.value;
    if (way === undefined) throw new Error(`${this.profile.name} has no release ${this.release}`);
    if (way === 'TDE_CONFIGURATION') {
      const value = this.control.parameters.TDE_CONFIGURATION ?? 'KEYSTORE_CONFIGURATION=FILE';
      const [, list = 'FILE'] = /KEYSTORE_CONFIGURATION\s*=\s*([A-Z|]+)/.exec(value) ?? [];
      return list.split('|').map((word) => (word === 'HSM' ? 'H' : 'F'));
    }
    const text = existsSync(this.#path('sqlnet.ora')) ? readFileSync(this.#path('sqlnet.ora'), 'utf8') : 'METHOD=FILE';
    if (!/METHOD\s*=\s*HSM/.test(text)) return ['F'];
    return /DIRECTORY/.test(text) ? ['H', 'F'] : ['H'];
  }

  // ---- statements ----------------------------------------------------------------------------------------------------------

  /** In the session of fg0. STARTUP needs none. */
  async execute(sql: string): Promise<readonly Row[]> {
    return await this.#execute(sql, this.#session);
  }

  async #execute(sql: string, session: Session | undefined): Promise<readonly Row[]> {
    const statement = parseStatement(sql);
    if (statement.kind !== 'insert' && statement.kind !== 'select')
      this.#alert(sql.replace(/"[^"]*"/g, '*').replace(/(SECRET)\s+'[^']*'/gi, '$1 *'));
    try {
      if (statement.kind === 'startup') return await this.#startup(statement.mount);
      if (session === undefined) throw new OraError('ORA-01034');
      return (await this.#run(statement, session)) ?? [];
    } catch (error) {
      if (error instanceof OraError) this.#alert(error.message);
      throw error;
    }
  }

  async #run(
    statement: Exclude<Statement, { kind: 'startup' }>,
    session: Session,
  ): Promise<readonly Row[] | undefined> {
    this.#refuseForeignSyntax(statement);
    switch (statement.kind) {
      case 'open-keystore':
        return await this.#openKeystore(statement, session);
      case 'close-keystore':
        return await this.#closeKeystore(statement, session);
      case 'set-key':
        return await this.#setKey(statement, session);
      case 'create-keystore':
        return await this.#wallets(
          session,
          'wallet-create',
          { path: this.#wallet, password: statement.password },
          null,
        );
      case 'create-auto-login':
        return await this.#wallets(
          session,
          'wallet-automatic',
          { path: this.#wallet, password: statement.password, target: this.#automatic },
          null,
        ).then((rows) => {
          if (statement.local) appendFileSync(this.#automatic, localMark(this.host));
          return rows;
        });
      case 'alter-password':
        return await this.#wallets(
          session,
          'wallet-password',
          { path: this.#wallet, password: statement.password, new: statement.next },
          statement.backup,
          true,
        );
      case 'add-secret':
        return await this.#wallets(
          session,
          'wallet-secret',
          { path: this.#wallet, password: statement.password, name: statement.client, value: statement.secret },
          statement.backup,
          true,
        );
      case 'create-tablespace':
        return await this.#createFile(session, statement.name, statement.file, 'tablespace', statement.encrypted);
      case 'alter-tablespace':
        return await this.#alterTablespace(statement, session);
      case 'create-table':
        return await this.#createTable(statement, session);
      case 'insert':
        await this.insert(statement.table, statement.text, { session });
        return [];
      case 'select':
        return await this.#select(statement.from, statement.count, session);
      case 'rman':
        return await this.#rman(statement.command);
      case 'switch-logfile':
        return await this.#switchLog();
      case 'set-parameter':
        return this.#setParameter(statement);
      case 'open-database':
        return await this.#openDatabase();
      case 'shutdown':
        return await this.#shutdown(statement.mode);
      case 'set-container':
        session.container = this.#containerNamed(statement.name).id;
        return [];
      case 'create-pdb':
        return await this.#createPdb(statement, session);
      case 'unplug-pdb':
        return this.#unplug(statement);
      case 'alter-pdb':
        this.#containerNamed(statement.name).open = statement.action === 'OPEN';
        this.#save();
        return [];
    }
  }

  #refuseForeignSyntax(statement: Statement): void {
    const old = 'old' in statement && statement.old;
    const managed = ['create-keystore', 'create-auto-login', 'alter-password', 'add-secret'].includes(statement.kind);
    const keyManagement = 'old' in statement || managed;
    if (keyManagement && !old && this.profile.statements.value === 'alter-system') throw new OraError('ORA-00900');
    if ('container' in statement && statement.container === 'all' && !this.control.cdb) throw new OraError('ORA-65090');
  }

  // ---- starting and ending -------------------------------------------------------------------------------------------------

  async #startup(mount: boolean): Promise<readonly Row[]> {
    if (this.#state !== 'down') throw new OraError('ORA-01081');
    writeDriverProfile(this.profile, this.#path('profile'));
    mkdirSync(this.host.traces, { recursive: true });
    this.#alert(`Starting ORACLE instance ${this.name} (${this.profile.title}, simulated)`);
    this.#order = this.#readConfiguration();
    const standby = this.control.role === 'standby';
    for (const role of ['gen0', 'fg0', 'lgwr', ...(standby ? ['mrp0'] : [])]) this.#table.start(role);
    this.#session = { container: 1, process: this.#process('fg0') };
    this.#state = 'mounted';
    if (!existsSync(this.#redo()))
      await this.#do(this.#process('lgwr'), 'create-redo', { path: this.#redo(), sequence: this.control.redo.current });
    // A wallet with an automatic login opens on its own, and with it the token whose PIN it has.
    if (existsSync(this.#automatic)) await this.#openAutomatically();
    return mount ? [] : await this.#openDatabase();
  }

  async #openAutomatically(): Promise<void> {
    const [, madeOn] = /\nLOCAL (.*)\n$/.exec(readFileSync(this.#automatic, 'latin1')) ?? [];
    if (madeOn !== undefined && madeOn !== this.host.base)
      return this.#alert(`${new OraError('ORA-28353', 'the local auto-login keystore is of another host').message}`);
    const all = this.control.containers.map(({ id }) => id);
    this.#open = { F: { automatic: true }, ...(this.#order.includes('H') ? { H: { secret: secretName } } : {}) };
    try {
      await this.#afterOpen(all);
    } catch (error) {
      this.#open = {};
      if (!(error instanceof OraError)) throw error;
      this.#alert(`${error.message}: automatic login`);
    }
  }

  async #openDatabase(): Promise<readonly Row[]> {
    if (this.control.role === 'primary' && !this.control.clean) {
      this.#alert('Beginning crash recovery');
      const applied = await this.#replay(this.#process('fg0'));
      this.#alert(`Completed crash recovery: ${applied} changes`);
    }
    this.#state = 'open';
    this.control.clean = false;
    this.#save();
    return [];
  }

  async #shutdown(mode: 'IMMEDIATE' | 'ABORT'): Promise<readonly Row[]> {
    if (mode === 'ABORT') {
      await this.die();
      return [];
    }
    if (this.control.role === 'primary' && this.#state === 'open') {
      // What is in memory only is written: the rows of the redo that no block has yet.
      if (this.#lazy) await this.#replay(this.#process('fg0'));
      this.control.redo.checkpoint = this.control.redo.current;
      this.control.clean = true;
    }
    this.#save();
    await Promise.all(this.processes().map((each) => each.stop()));
    this.#down();
    return [];
  }

  #filesByNumber(): Record<string, string> {
    return Object.fromEntries(this.control.files.map(({ number, file }) => [`file.${number}`, this.#path(file)]));
  }

  /** Applies the redo since the last checkpoint; answers how many changes the blocks did not have. */
  async #replay(by: DatabaseProcess): Promise<number> {
    await this.#attach(by);
    let applied = 0;
    for (let sequence = this.control.redo.checkpoint; sequence <= this.control.redo.current; sequence += 1) {
      const redo = this.#redo(sequence);
      applied += (await this.#do(by, 'replay', { redo, ...this.#filesByNumber() })).applied ?? 0;
    }
    this.control.redo.checkpoint = this.control.redo.current;
    this.#lazy = false;
    this.#save();
    return applied;
  }

  // ---- keystores -----------------------------------------------------------------------------------------------------------

  #container(session: Session): Container {
    const found = this.control.containers.find(({ id }) => id === session.container);
    if (found === undefined) throw new OraError('ORA-65011');
    return found;
  }
  #containerNamed(name: string): Container {
    const found = this.control.containers.find((each) => each.name === name);
    if (found === undefined) throw new OraError('ORA-65011', name);
    return found;
  }

  async #openKeystore(statement: Statement & { kind: 'open-keystore' }, session: Session): Promise<readonly Row[]> {
    const containers = containerReach(statement, this.control.containers, this.#container(session)).map(({ id }) => id);
    const there = Object.keys(this.#open).length > 0;
    if (there && containers.every((id) => this.#openIn.has(id))) throw new OraError('ORA-28354');
    const before = { ...this.#open };
    const [first] = this.#order;
    if (this.#order.includes('H') && this.#open.H === undefined) this.#open.H = { pin: statement.password };
    if (this.#order.includes('F') && this.#open.F === undefined) {
      // The wallet opens as well if the password is its own; another password is an error only if the wallet is first.
      const opened = await this.#table.step(session.process, 'wallet-open', {
        path: this.#wallet,
        password: statement.password,
      });
      if (opened.ok) this.#open.F = { password: statement.password };
      else if (first === 'F') {
        this.#open = before;
        throw errorOf(opened);
      }
    }
    try {
      await this.#afterOpen(containers, session.process);
    } catch (error) {
      this.#open = before;
      throw error;
    }
    return [];
  }

  /** Steps of an open: the label of each container's key is searched, and gen0 loads that of the root. */
  async #afterOpen(containers: readonly number[], by = this.#process('fg0')): Promise<void> {
    await this.#attach(by);
    for (const container of this.control.containers.filter(({ id }) => containers.includes(id)))
      for (const key of Object.values(container.keys)) {
        if (key.keystore !== this.#order[0] && this.#open[key.keystore] === undefined) continue;
        const { found = 0 } = await this.#do(by, 'find', { id: key.id, keystore: key.keystore, afresh: true });
        if (found > 0) continue;
        // Among several, a pluggable database without its key does not keep the others closed.
        if (container.id === 1 || containers.length === 1) throw new OraError('ORA-28353', `no master key ${key.id}`);
        this.#alert(`${container.name}: no master key ${key.id}`);
      }
    for (const id of containers) this.#openIn.add(id);
    this.#alert(`keystore opened: ${this.#order.map((kind) => (kind === 'H' ? 'HSM' : 'FILE')).join('|')}`);
    await this.#takeUpHeartbeat();
  }

  async #takeUpHeartbeat(): Promise<void> {
    const key = Object.values(this.control.containers[0]?.keys ?? {})[0];
    if (key?.keystore !== 'H' || this.#open.H === undefined || this.#heartbeats.key !== null) return;
    const gen0 = this.#process('gen0');
    await this.#attach(gen0);
    await this.#do(gen0, 'find', { id: key.id });
    this.#heartbeats = { key: key.id, failures: 0 };
  }

  async #closeKeystore(statement: Statement & { kind: 'close-keystore' }, session: Session): Promise<readonly Row[]> {
    const one = this.#container(session);
    const root = this.control.containers[0];
    if (Object.keys(this.#open).length === 0) throw new OraError('ORA-28365');
    const containers = one === root || statement.container === 'all' ? this.control.containers : [one];
    for (const { id } of containers) this.#openIn.delete(id);
    if (this.#openIn.size === 0) await this.#closeAll();
    return [];
  }

  async #closeAll(): Promise<void> {
    this.#open = {};
    this.#openIn.clear();
    this.#heartbeats = { key: null, failures: 0 };
    await this.#table.detachAll();
  }

  async #wallets(
    session: Session,
    step: StepName,
    given: Readonly<Record<string, string>>,
    backup: Backup,
    mustBackUp = false,
  ): Promise<readonly Row[]> {
    if (mustBackUp) this.#backUpWallet(backup);
    await this.#do(session.process, step, given);
    return [];
  }

  #backUpWallet(backup: Backup): void {
    if (!existsSync(this.#wallet)) return;
    if (backup === null) throw new OraError('ORA-46631');
    const stamp = now().replace(/\D/g, '').slice(0, 14);
    copyFileSync(
      this.#wallet,
      this.#path(`wallet/ewallet_${stamp}${backup.name === null ? '' : `_${backup.name}`}.p12`),
    );
  }

  // ---- master keys ---------------------------------------------------------------------------------------------------------

  async #setKey(statement: Statement & { kind: 'set-key' }, session: Session): Promise<readonly Row[]> {
    if (statement.reverse !== null && !this.profile.reverseMigration.value) throw new OraError('ORA-02065');
    const containers = containerReach(
      statement,
      this.control.containers.filter(({ open }) => open),
      this.#container(session),
    );
    if (statement.container === 'all' && session.container !== 1) throw new OraError('ORA-65040');
    const target = this.#order[0] ?? 'F';
    const by = session.process;
    const before = { ...this.#open };
    try {
      await this.#openForKey(statement, target, by);
      await this.#attach(by);
    } catch (error) {
      this.#open = before;
      throw error;
    }
    for (const container of containers) await this.#setKeyOf(container, target, statement.password, by);
    if (statement.reverse !== null) {
      this.#open = { F: { password: statement.password } };
      this.#heartbeats = { key: null, failures: 0 };
    }
    if (containers.includes(this.control.containers[0] as Container)) await this.#switchLog();
    await this.#takeUpHeartbeat();
    return [];
  }

  /** The keystores that must be open for a SET KEY: the one for the new key, and the one of the current keys. */
  async #openForKey(
    statement: Statement & { kind: 'set-key' },
    target: KeystoreKind,
    by: DatabaseProcess,
  ): Promise<void> {
    const { password, migrate, reverse, force, old, backup } = statement;
    if (reverse !== null) {
      // Both keystores: the wallet under its password, the token to read with.
      if (target !== 'F') throw new OraError('ORA-28353', 'the first keystore is not FILE');
      this.#backUpWallet(backup);
      this.#open = { F: { password }, H: { pin: reverse } };
    } else if (migrate !== null) {
      if (target !== 'H' || !this.#order.includes('F'))
        throw new OraError('ORA-28353', 'the first keystore is not HSM');
      if (!old) this.#backUpWallet(backup);
      this.#open = { H: this.#open.H ?? { pin: password }, F: { password: migrate } };
    } else {
      // In 11g, setting the key opens a closed keystore and creates a missing wallet.
      if (old && target === 'F' && !existsSync(this.#wallet))
        await this.#do(by, 'wallet-create', { path: this.#wallet, password });
      if (this.#open[target] === undefined && (force || old)) {
        if (target === 'H') this.#open.H = { pin: password };
        else this.#open.F = { password };
      }
      if (this.#open[target] === undefined) throw new OraError('ORA-28365');
      if (target === 'F' && !old) this.#backUpWallet(backup);
    }
  }

  /** Creates a new master key for one container, rewraps its keys under it, and makes it the container's key. */
  async #setKeyOf(container: Container, keystore: KeystoreKind, password: string, by: DatabaseProcess): Promise<void> {
    for (const role of this.profile.masterKeys) {
      const about = `${this.name} ${container.name} ${now()}`;
      const { id = '' } = await this.#do(by, 'generate', {
        role: role.idPrefix,
        keystore,
        about,
        path: this.#wallet,
        password,
      });
      const key = { id, container: container.id, keystore, createdAt: now(), activatedAt: null as string | null };
      this.control.keys.push(key);
      this.#save();
      for (const file of this.control.files.filter(
        (each) => each.container === container.id && this.#goesBy(each, role),
      ))
        if (file.encrypted && !file.readOnly)
          await this.#do(by, 'rewrap', {
            path: this.#path(file.file),
            file: file.number,
            redo: this.#redo(),
            ...this.#under(file.kind, { id, keystore }),
          });
      container.keys[role.purpose] = { id, keystore };
      key.activatedAt = now();
      this.#save();
      this.#alert(`new master key of ${container.name}: ${id}`);
    }
    this.#openIn.add(container.id);
  }

  #goesBy(file: DataFile, role: MasterKeyRole): boolean {
    return role.purpose === 'all' || role.purpose === file.kind;
  }
  #under(kind: DataFile['kind'], key: { readonly id: string; readonly keystore: KeystoreKind }) {
    const { wrapMechanism, columnMechanism } = this.profile;
    const mechanism = mechanismNumber(kind === 'column' ? columnMechanism.value : wrapMechanism.value);
    return { id: key.id, keystore: key.keystore, mechanism };
  }
  /** The current master key of a container. */
  #keyOf(container: Container, kind: DataFile['kind']) {
    const purposes: readonly Purpose[] = ['all', kind];
    const key = purposes.map((purpose) => container.keys[purpose]).find((each) => each !== undefined);
    if (!this.#openIn.has(container.id)) throw new OraError('ORA-28365');
    if (key === undefined) throw new OraError('ORA-28361');
    return key;
  }

  // ---- data ----------------------------------------------------------------------------------------------------------------

  async #createFile(
    session: Session,
    name: string,
    file: string,
    kind: DataFile['kind'],
    encrypted: boolean,
  ): Promise<readonly Row[]> {
    this.#mustBeOpen();
    const container = this.#container(session);
    const number = this.control.nextNumber++;
    if (encrypted) await this.#attach(session.process);
    mkdirSync(dirname(this.#path(file)), { recursive: true });
    await this.#do(session.process, 'create-file', {
      path: this.#path(file),
      file: number,
      redo: this.#redo(),
      bytes: encrypted ? this.profile.keyBytes[kind].value : 0,
      ...(encrypted ? this.#under(kind, this.#keyOf(container, kind)) : {}),
    });
    this.control.files.push({ number, container: container.id, name, file, kind, encrypted, readOnly: false });
    this.#save();
    return [];
  }

  #mustBeOpen(): void {
    if (this.#state !== 'open') throw new OraError('ORA-01109');
    if (this.control.role === 'standby') throw new OraError('ORA-16000');
  }

  async #createTable(statement: Statement & { kind: 'create-table' }, session: Session): Promise<readonly Row[]> {
    const { name, tablespace, encrypted } = statement;
    const place = this.control.files.find((each) => each.name === tablespace && each.container === session.container);
    if (place === undefined) throw new OraError('ORA-00959', tablespace);
    let file = place.number;
    if (encrypted) {
      // A table whose column is encrypted has a key of its own; its segment is a file of its own here.
      const path = join(dirname(place.file), `${basename(place.file, '.dbf')}_${name.toLowerCase()}.dbf`);
      await this.#createFile(session, name, path, 'column', true);
      file = this.control.nextNumber - 1;
    }
    this.control.tables.push({ container: session.container, name, file });
    this.#save();
    return [];
  }

  async #alterTablespace(
    statement: Statement & { kind: 'alter-tablespace' },
    session: Session,
  ): Promise<readonly Row[]> {
    this.#mustBeOpen();
    const file = this.control.files.find(
      (each) => each.name === statement.name && each.container === session.container,
    );
    if (file === undefined) throw new OraError('ORA-00959', statement.name);
    if (statement.action === 'read-only' || statement.action === 'read-write') {
      file.readOnly = statement.action === 'read-only';
      this.#save();
      return [];
    }
    if (this.profile.releases[this.release]?.onlineEncryption.value !== true)
      throw new OraError('ORA-00922', 'ENCRYPTION ONLINE');
    if (file.readOnly) throw new OraError('ORA-00372', file.file);
    await this.#attach(session.process);
    const encrypted = statement.action !== 'decrypt';
    await this.#do(session.process, 'rekey', {
      path: this.#path(file.file),
      file: file.number,
      redo: this.#redo(),
      bytes: encrypted ? this.profile.keyBytes[file.kind].value : 0,
      ...this.#under(file.kind, this.#keyOf(this.#container(session), file.kind)),
    });
    file.encrypted = encrypted;
    this.#save();
    return [];
  }

  #fileOf(table: string, session: Session): DataFile {
    const found = this.control.tables.find((each) => each.name === table && each.container === session.container);
    const file = this.control.files.find(({ number }) => number === found?.file);
    if (file === undefined) throw new OraError('ORA-00942', table);
    if (file.encrypted && !this.#openIn.has(session.container)) throw new OraError('ORA-28365');
    return file;
  }

  /** A row; a lazy one has its redo on the disk and its block in memory only, so that a crash takes the block. */
  async insert(
    table: string,
    text: string,
    { session = this.#session, lazy = false }: { readonly session?: Session | undefined; readonly lazy?: boolean } = {},
  ): Promise<void> {
    this.#mustBeOpen();
    if (session === undefined) throw new OraError('ORA-01034');
    const file = this.#fileOf(table, session);
    if (file.readOnly) throw new OraError('ORA-00372', file.file);
    if (file.encrypted) await this.#attach(session.process);
    const given = { path: this.#path(file.file), file: file.number, redo: this.#redo(), text, lazy };
    await this.#do(session.process, 'insert', given);
    this.#lazy ||= lazy;
  }

  async #select(from: string, count: boolean, session: Session): Promise<readonly Row[]> {
    if (from === 'V$ENCRYPTION_WALLET') return await this.#encryptionWallet(session);
    // The view came with ADMINISTER KEY MANAGEMENT.
    if (from === 'V$ENCRYPTION_KEYS' && this.profile.statements.value === 'administer')
      return keyRows(this.control.keys);
    if (this.#state !== 'open') throw new OraError('ORA-01109');
    if (from === 'DBA_ENCRYPTED_COLUMNS') return encryptedColumns(this.control, session.container);
    const file = this.#fileOf(from, session);
    if (file.encrypted) await this.#attach(session.process);
    const { rows } = await this.#do(session.process, 'select', { path: this.#path(file.file) });
    return count ? [{ 'COUNT(*)': rows.length }] : rows.map((row) => ({ C: row }));
  }

  /** Unwraps the key of a table's file as a process does that has nothing cached: the load of a scenario. */
  async unwrap(connection: Connection, table: string): Promise<Answer> {
    const session: Session = { container: 1, process: connection.process };
    const file = this.#fileOf(table, session);
    await this.#attach(connection.process);
    return await connection.process.step('unwrap', { path: this.#path(file.file) });
  }

  /** Which master key the header of a table's file names. */
  async headerOf(table: string, container = 1): Promise<string> {
    const session: Session = { container, process: this.#process('fg0') };
    const found = this.control.tables.find((each) => each.name === table && each.container === session.container);
    const file = this.control.files.find(({ number }) => number === found?.file);
    return (await this.#do(session.process, 'describe', { path: this.#path(file?.file ?? '') })).id ?? '';
  }

  // ---- redo ----------------------------------------------------------------------------------------------------------------

  async #switchLog(): Promise<readonly Row[]> {
    const lgwr = this.#process('lgwr');
    const root = this.control.containers[0];
    const key = root === undefined ? undefined : (root.keys.all ?? root.keys.tablespace);
    const sequence = this.control.redo.current + 1;
    const usable = key !== undefined && this.#openIn.has(1);
    if (key !== undefined && !usable) throw new OraError('ORA-28365');
    if (usable) await this.#attach(lgwr);
    await this.#do(lgwr, 'create-redo', {
      path: this.#redo(sequence),
      sequence,
      ...(usable ? this.#under('tablespace', key) : {}),
    });
    this.control.redo.current = sequence;
    this.#save();
    return [];
  }

  // ---- heartbeat -----------------------------------------------------------------------------------------------------------

  /** Lets time pass: gen0 calls every three seconds of it. */
  async advance(seconds: number): Promise<void> {
    const before = Math.floor(this.#clock / this.profile.heartbeatSeconds.value);
    this.#clock += seconds;
    const beats = Math.floor(this.#clock / this.profile.heartbeatSeconds.value) - before;
    for (let beat = 0; beat < beats && this.#heartbeats.key !== null; beat += 1) await this.#beat(this.#heartbeats.key);
  }

  async #beat(key: string): Promise<void> {
    const answer = await this.#table.step(this.#process('gen0'), 'heartbeat', { id: key });
    if (answer.ok) {
      this.#heartbeats.failures = 0;
      return;
    }
    this.#heartbeats.failures += 1;
    this.#alert(`gen0: heartbeat failed: ${errorOf(answer).message}`);
    if (this.#heartbeats.failures < this.profile.failuresToClose.value) return;
    this.#alert('gen0: keystore closed');
    await this.#closeAll();
  }

  // ---- parameters and views ------------------------------------------------------------------------------------------------

  #setParameter({ name, value, scope }: Statement & { kind: 'set-parameter' }): readonly Row[] {
    const release = this.profile.releases[this.release];
    if (name === 'TDE_CONFIGURATION') {
      if (release?.wallet.value !== 'TDE_CONFIGURATION') throw new OraError('ORA-02065', name);
    } else if (name === 'PKCS11_LIBRARY_LOCATION') {
      if (release?.libraryLocation.value !== true) throw new OraError('ORA-02065', name);
      findLibrary(this.host.base, value, process.getuid?.() ?? 0);
    } else if (name !== 'WALLET_ROOT') throw new OraError('ORA-02065', name);
    else if (scope !== 'SPFILE') throw new OraError('ORA-02095', name);
    this.control.parameters[name] = value;
    this.#save();
    if (name === 'TDE_CONFIGURATION' && scope !== 'SPFILE') this.#order = this.#readConfiguration();
    return [];
  }

  /** V$ENCRYPTION_WALLET: of all containers in the root, else of the session's own. */
  async #encryptionWallet(session: Session): Promise<readonly Row[]> {
    const containers = session.container === 1 ? this.control.containers : [this.#container(session)];
    const rows: Row[] = [];
    for (const container of containers) {
      const [key] = Object.values(container.keys);
      const there = this.#openIn.has(container.id) && key !== undefined && (await this.#present(key, session));
      for (const keystore of this.#order)
        rows.push(
          walletRow({
            keystore,
            order: this.#order,
            open: this.#openIn.has(container.id) ? this.#open : {},
            container: container.id,
            hasKey: there,
            wallet: existsSync(this.#wallet) || existsSync(this.#automatic) ? dirname(this.#wallet) : null,
          }),
        );
    }
    return rows;
  }

  async #present(
    key: { readonly id: string; readonly keystore: KeystoreKind },
    { process: by }: Session,
  ): Promise<boolean> {
    if (this.#open[key.keystore] === undefined) return false;
    await this.#attach(by);
    return ((await this.#do(by, 'find', key)).found ?? 0) > 0;
  }

  // ---- pluggable databases -------------------------------------------------------------------------------------------------

  #newContainer(name: string, keys: Container['keys']): Container {
    const id = Math.max(2, ...this.control.containers.map((each) => each.id)) + 1;
    const made: Container = { id, name, open: false, keys };
    this.control.containers.push(made);
    return made;
  }

  async #createPdb(statement: Statement & { kind: 'create-pdb' }, session: Session): Promise<readonly Row[]> {
    if (!this.control.cdb) throw new OraError('ORA-65090');
    if (session.container !== 1) throw new OraError('ORA-65040');
    const { name, from, using, convert, password } = statement;
    if (from === null && using === null) {
      this.#newContainer(name, {});
      this.#save();
      return [];
    }
    const source = from === null ? readArchive(this.#path(using ?? '')) : this.#describePdb(from);
    const encrypted = source.files.some((file) => file.encrypted);
    if (encrypted && password === null) throw new OraError('ORA-46697');
    if (encrypted && Object.keys(this.control.containers[0]?.keys ?? {}).length === 0)
      throw new OraError('ORA-28361', 'CDB$ROOT');
    const container = this.#newContainer(name, source.keys);
    for (const file of source.files) {
      const path = file.file.replace(convert[0], convert[1]);
      mkdirSync(dirname(this.#path(path)), { recursive: true });
      writeFileSync(this.#path(path), file.bytes, { mode: 0o600, flag: 'wx' });
      const { bytes: _bytes, table, ...kept } = file;
      const number = this.control.nextNumber++;
      this.control.files.push({ ...kept, number, container: container.id, file: path });
      for (const each of table) this.control.tables.push({ container: container.id, name: each, file: number });
    }
    this.#save();
    return [];
  }

  #describePdb(name: string): Archive {
    const container = this.#containerNamed(name);
    return {
      keys: container.keys,
      files: this.control.files
        .filter((file) => file.container === container.id)
        .map((file) => ({
          ...file,
          table: this.control.tables.filter((table) => table.file === file.number).map((table) => table.name),
          bytes: readFileSync(this.#path(file.file)),
        })),
    };
  }

  #unplug(statement: Statement & { kind: 'unplug-pdb' }): readonly Row[] {
    const container = this.#containerNamed(statement.name);
    if (container.open) throw new OraError('ORA-01081', `${statement.name} is open`);
    writeArchive(this.#path(statement.file), this.#describePdb(statement.name));
    return [];
  }

  // ---- next to SQL: Data Guard and RMAN -------------------------------------------------------------------------------------

  /** What RMAN's catalog has: the folder of the one backup. */
  backup: string | null = null;

  async #rman(command: 'restore' | 'recover' | 'list'): Promise<readonly Row[]> {
    if (command === 'list') return this.backup === null ? [] : [{ KEY: 1, TY: 'B', S: 'A' }];
    if (this.#state !== 'mounted') throw new OraError('ORA-01034', 'not mounted');
    if (command === 'recover') {
      await this.#replay(this.#process('fg0'));
      return [];
    }
    const saved = this.backup === null ? undefined : readControlFile(join(this.backup, 'control'));
    if (this.backup === null || saved === undefined) throw new OraError('RMAN-06023');
    copyDatabase(this.backup, this.directory, ['data'], ['control', 'sqlnet.ora']);
    for (const part of ['containers', 'files', 'tables', 'keys', 'redo'] as const)
      this.control[part] = structuredClone(saved[part]) as never;
    this.control.nextNumber = saved.nextNumber;
    this.control.clean = saved.clean;
    this.#save();
    return [];
  }

  /** RMAN BACKUP and RESTORE in one: everything that a restored database needs, as it is on the disk. */
  copyTo(directory: string, parts: readonly ('wallet' | 'data')[] = ['wallet', 'data']): void {
    copyDatabase(this.directory, directory, parts);
  }

  /** A standby of this database, not started, on another host: RMAN DUPLICATE. */
  makeStandby(host: DatabaseHost, name: string, directory: string): Instance {
    this.copyTo(directory, ['data']);
    const standby = new Instance({ name, directory, profile: this.profile, release: this.release, host });
    standby.control.role = 'standby';
    standby.control.clean = true;
    standby.#save();
    return standby;
  }

  /** Redo transport and apply: fetches the primary's new redo and lets mrp0 apply it. Returns the number of changes. */
  async applyFrom(primary: Instance): Promise<number> {
    const { control } = this;
    for (let sequence = control.redo.checkpoint; sequence <= primary.control.redo.current; sequence += 1)
      copyFileSync(primary.#redo(sequence), this.#redo(sequence));
    for (const part of ['containers', 'files', 'tables', 'keys'] as const)
      control[part] = structuredClone(primary.control[part]) as never;
    control.nextNumber = primary.control.nextNumber;
    control.redo.current = primary.control.redo.current;
    for (const { file } of control.files) mkdirSync(dirname(this.#path(file)), { recursive: true });
    return await this.#replay(this.#process('mrp0'));
  }

  /** ALTER DATABASE ACTIVATE STANDBY DATABASE. */
  async activate(): Promise<void> {
    this.control.role = 'primary';
    this.#save();
    await this.#openDatabase();
    await this.#switchLog();
  }

  /** orapki, with which 11g changes the password of a wallet and creates an automatic login. */
  async orapki(
    change: { readonly password: string; readonly next: string } | { readonly autoLogin: string },
  ): Promise<void> {
    const by = this.#process('fg0');
    if ('autoLogin' in change)
      await this.#do(by, 'wallet-automatic', {
        path: this.#wallet,
        password: change.autoLogin,
        target: this.#automatic,
      });
    else await this.#do(by, 'wallet-password', { path: this.#wallet, password: change.password, new: change.next });
  }

  /** C_DestroyObject of a master key: what no statement of the database does, and an administrator with a tool can. */
  async destroy(id: string): Promise<void> {
    const by = this.#process('fg0');
    await this.#attach(by);
    await this.#do(by, 'destroy', { id });
  }

  /** The id of a container's current key. */
  keyOf(container = 1): string {
    const keys = this.control.containers.find(({ id }) => id === container)?.keys ?? {};
    return (keys.all ?? keys.tablespace ?? keys.column)?.id ?? '';
  }
}
