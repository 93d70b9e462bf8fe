// One instance of a simulated database: its processes, its directory, and the effect of each
// statement. The order of the calls is decided here and in the parts (core.ts names them), by the
// profile; the processes (driver/) make them. What an instance keeps in memory, such as the PIN of
// the open keystore, dies with it.
//
// Not modelled: SQL beyond statements.ts, buffer cache and undo, isolated keystores of pluggable
// databases, cache fusion of a cluster, whose instances share files here, Data Pump.
import { readFileSync, writeFileSync } from 'node:fs';
import type { ControlFile } from './control-file.ts';
import { copyDatabase } from './copy-database.ts';
import { Core, type InstanceOptions, type Session } from './core.ts';
import { alterTablespace, createFile, createTable, headerOf, insert, selectRows, unwrapKey } from './data-files.ts';
import {
  addSecret,
  advance,
  alterPassword,
  closeKeystore,
  createAutoLogin,
  createKeystore,
  openKeystore,
} from './keystores.ts';
import { setKey } from './master-keys.ts';
import { OraError } from './ora-error.ts';
import { setParameter } from './parameters.ts';
import { createPdb, unplug } from './pluggable.ts';
import type { Answer, DatabaseProcess, StepName } from './process.ts';
import type { DatabaseHost } from './process-table.ts';
import type { Profile } from './profile.ts';
import { applyFrom, die, openDatabase, rman, shutDown, startUp } from './recovery.ts';
import { switchLog } from './redo.ts';
import { parseStatement, type Statement } from './statements.ts';
import type { Row } from './views.ts';

export interface Connection {
  readonly process: DatabaseProcess;
  execute(sql: string): Promise<readonly Row[]>;
  end(): Promise<void>;
}

export class Instance {
  readonly #core: Core;

  constructor(options: InstanceOptions) {
    this.#core = new Core(options);
  }

  get name(): string {
    return this.#core.name;
  }
  get directory(): string {
    return this.#core.directory;
  }
  get profile(): Profile {
    return this.#core.profile;
  }
  get release(): string {
    return this.#core.release;
  }
  get host(): DatabaseHost {
    return this.#core.host;
  }
  get control(): ControlFile {
    return this.#core.control;
  }
  get state(): Core['state'] {
    return this.#core.state;
  }
  /** Where the software keystore is, or will be after the next start. */
  get walletDirectory(): string {
    return this.#core.walletDirectory;
  }
  set backup(folder: string) {
    this.#core.backup = folder;
  }
  alertLog(): string {
    return readFileSync(this.#core.path(`alert_${this.name}.log`), 'utf8');
  }
  processes(): readonly DatabaseProcess[] {
    return this.#core.table.all();
  }
  /** Called before each step of a statement; a scenario lets the instance die here. */
  set beforeStep(work: (step: StepName) => Promise<void>) {
    this.#core.table.beforeStep = work;
  }

  /**
   * Another foreground, as a client's connection brings it; `through`: a local client's, which runs
   * as its own OS user.
   */
  connect(through?: readonly string[]): Connection {
    const core = this.#core;
    if (core.state !== 'open') throw new OraError('ORA-01034');
    core.foregrounds += 1;
    const started = core.table.start(`fg${core.foregrounds}`, through);
    const session: Session = { container: 1, process: started };
    return {
      process: started,
      execute: (sql) => this.#execute(sql, session),
      end: async () => {
        await started.stop();
        core.table.forget(started);
      },
    };
  }
  die(): Promise<void> {
    return die(this.#core);
  }

  /** sqlnet.ora, which releases up to 18c read when they start. */
  writeSqlnet(value: string): void {
    writeFileSync(this.#core.path('sqlnet.ora'), `ENCRYPTION_WALLET_LOCATION = ${value}\n`);
  }

  // ---- statements -------------------------------------------------------------------------------

  /** In the session of fg0. STARTUP needs none. */
  async execute(sql: string): Promise<readonly Row[]> {
    return await this.#execute(sql, this.#core.session);
  }

  async #execute(sql: string, session: Session | undefined): Promise<readonly Row[]> {
    const core = this.#core;
    const statement = parseStatement(sql);
    if (statement.kind !== 'insert' && statement.kind !== 'select')
      core.alert(sql.replace(/"[^"]*"/g, '*').replace(/(SECRET)\s+'[^']*'/gi, '$1 *'));
    try {
      if (statement.kind === 'startup') return await startUp(core, statement.mount);
      if (session === undefined) throw new OraError('ORA-01034');
      return (await this.#run(statement, session)) ?? [];
    } catch (error) {
      if (error instanceof OraError) core.alert(error.message);
      throw error;
    }
  }

  async #run(
    statement: Exclude<Statement, { kind: 'startup' }>,
    session: Session,
  ): Promise<readonly Row[] | undefined> {
    const core = this.#core;
    this.#refuseForeignSyntax(statement);
    switch (statement.kind) {
      case 'open-keystore':
        return await openKeystore(core, statement, session);
      case 'close-keystore':
        return await closeKeystore(core, statement, session);
      case 'set-key':
        return await setKey(core, statement, session);
      case 'create-keystore':
        return await createKeystore(core, statement, session);
      case 'create-auto-login':
        return await createAutoLogin(core, statement, session);
      case 'alter-password':
        return await alterPassword(core, statement, session);
      case 'add-secret':
        return await addSecret(core, statement, session);
      case 'switchover':
        throw new OraError(
          core.control.parameters.PKCS11_LIBRARY_LOCATION === undefined ? 'ORA-46706' : 'ORA-46703',
          statement.library,
        );
      case 'create-tablespace':
        return await createFile(core, session, statement.name, statement.file, 'tablespace', statement.encrypted);
      case 'alter-tablespace':
        return await alterTablespace(core, statement, session);
      case 'create-table':
        return await createTable(core, statement, session);
      case 'insert':
        await insert(core, statement.table, statement.text, { session });
        return [];
      case 'select':
        return await selectRows(core, statement.from, statement.count, session);
      case 'rman':
        return await rman(core, statement.command);
      case 'switch-logfile':
        return await switchLog(core);
      case 'set-parameter':
        return setParameter(core, statement);
      case 'open-database':
        return await openDatabase(core);
      case 'shutdown':
        return await shutDown(core, statement.mode);
      case 'set-container':
        session.container = core.containerNamed(statement.name).id;
        return [];
      case 'create-pdb':
        return await createPdb(core, statement, session);
      case 'unplug-pdb':
        return unplug(core, statement);
      case 'alter-pdb':
        core.containerNamed(statement.name).open = statement.action === 'OPEN';
        core.save();
        return [];
    }
  }

  #refuseForeignSyntax(statement: Statement): void {
    const core = this.#core;
    const old = 'old' in statement && statement.old;
    const managed = ['create-keystore', 'create-auto-login', 'alter-password', 'add-secret', 'switchover'];
    const keyManagement = 'old' in statement || managed.includes(statement.kind);
    if (keyManagement && !old && core.profile.statements.value === 'alter-system') throw new OraError('ORA-00900');
    if ('container' in statement && statement.container === 'all' && !core.control.cdb) throw new OraError('ORA-65090');
    if (statement.kind === 'switchover' && !core.of.libraryLocation.value) throw new OraError('ORA-00900');
  }

  // ---- what scenarios do next to SQL ------------------------------------------------------------

  /**
   * A row; a lazy one has its redo on the disk and its block in memory only, so that a crash takes
   * the block.
   */
  async insert(table: string, text: string, options: { readonly lazy?: boolean } = {}): Promise<void> {
    await insert(this.#core, table, text, options);
  }
  /**
   * Unwraps the key of a table's file as a process does that has nothing cached: the load of a
   * scenario.
   */
  unwrap(connection: Connection, table: string): Promise<Answer> {
    return unwrapKey(this.#core, connection.process, table);
  }
  /** Which master key the header of a table's file names. */
  headerOf(table: string, container = 1): Promise<string> {
    return headerOf(this.#core, table, container);
  }
  /** Lets time pass for gen0. */
  advance(seconds: number): Promise<void> {
    return advance(this.#core, seconds);
  }
  /**
   * RMAN BACKUP and RESTORE in one: everything that a restored database needs, as it is on the
   * disk.
   */
  copyTo(directory: string, parts: readonly ('wallet' | 'data')[] = ['wallet', 'data']): void {
    copyDatabase(this.directory, directory, parts);
  }

  /** A standby of this database, not started, on another host: RMAN DUPLICATE. */
  makeStandby(host: DatabaseHost, name: string, directory: string): Instance {
    this.copyTo(directory, ['data']);
    const standby = new Instance({ name, directory, profile: this.profile, release: this.release, host });
    standby.control.role = 'standby';
    standby.control.clean = true;
    standby.#core.save();
    return standby;
  }
  /**
   * Another instance of this database, not started, on another host of its cluster: the files are
   * shared.
   */
  joinCluster(host: DatabaseHost, name: string): Instance {
    const { directory, profile, release, control } = this;
    return new Instance({ name, directory, profile, release, host, shares: control });
  }
  applyFrom(primary: Instance): Promise<number> {
    return applyFrom(this.#core, primary.#core);
  }
  /** ALTER DATABASE ACTIVATE STANDBY DATABASE. */
  async activate(): Promise<void> {
    this.control.role = 'primary';
    this.#core.save();
    await openDatabase(this.#core);
    await switchLog(this.#core);
  }

  /** orapki, with which 11g changes the password of a wallet and creates an automatic login. */
  async orapki(
    change: { readonly password: string; readonly next: string } | { readonly autoLogin: string },
  ): Promise<void> {
    const core = this.#core;
    const [by, path] = [core.process('fg0'), core.wallet];
    if ('autoLogin' in change)
      await core.do(by, 'wallet-automatic', { path, password: change.autoLogin, target: core.automatic });
    else await core.do(by, 'wallet-password', { path, password: change.password, new: change.next });
  }

  /**
   * C_DestroyObject of a master key: what no statement of the database does, and an administrator
   * with a tool can.
   */
  async destroy(id: string): Promise<void> {
    const by = this.#core.process('fg0');
    await this.#core.attach(by);
    await this.#core.do(by, 'destroy', { id });
  }

  /** The id of a container's current key. */
  keyOf(container = 1): string {
    const keys = this.control.containers.find(({ id }) => id === container)?.keys ?? {};
    return (keys.all ?? keys.tablespace ?? keys.column)?.id ?? '';
  }
}
