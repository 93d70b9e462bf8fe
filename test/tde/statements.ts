// The statements that the simulator knows, in the database's own words: those of key management as
// the releases have them, and as much of the rest of SQL as the scenarios need (a table has one
// column of text).
import { OraError } from './ora-error.ts';

export type Backup = { readonly name: string | null } | null;
export type Reach = 'all' | 'current';
/** A literal, or what a store of passwords has. */
export type Password = { readonly literal: string } | 'external';

export type Statement =
  | { readonly kind: 'open-keystore'; readonly password: Password; readonly container: Reach; readonly old: boolean }
  | {
      readonly kind: 'close-keystore';
      readonly password: Password | null;
      readonly container: Reach;
      readonly old: boolean;
    }
  | {
      readonly kind: 'set-key';
      readonly password: Password;
      readonly force: boolean;
      readonly backup: Backup;
      readonly container: Reach;
      /** The password of the keystore that the keys come from. */
      readonly migrate: Password | null;
      readonly reverse: Password | null;
      readonly old: boolean;
    }
  | { readonly kind: 'create-keystore'; readonly place: string | null; readonly password: string }
  | {
      readonly kind: 'create-auto-login';
      readonly place: string | null;
      readonly password: string;
      readonly local: boolean;
    }
  | { readonly kind: 'alter-password'; readonly password: string; readonly next: string; readonly backup: Backup }
  | {
      readonly kind: 'add-secret';
      readonly secret: string;
      readonly client: string;
      readonly password: Password;
      readonly force: boolean;
      /** Not the keystore of the database. */
      readonly store: { readonly place: string; readonly local: boolean } | null;
      readonly backup: Backup;
    }
  | { readonly kind: 'switchover'; readonly library: string }
  | { readonly kind: 'create-tablespace'; readonly name: string; readonly file: string; readonly encrypted: boolean }
  | {
      readonly kind: 'alter-tablespace';
      readonly name: string;
      readonly action: 'encrypt' | 'rekey' | 'decrypt' | 'read-only' | 'read-write';
    }
  | { readonly kind: 'create-table'; readonly name: string; readonly tablespace: string; readonly encrypted: boolean }
  | { readonly kind: 'insert'; readonly table: string; readonly text: string }
  | { readonly kind: 'select'; readonly from: string; readonly count: boolean }
  | { readonly kind: 'switch-logfile' }
  | { readonly kind: 'set-parameter'; readonly name: string; readonly value: string; readonly scope: string }
  | { readonly kind: 'startup'; readonly mount: boolean }
  | { readonly kind: 'open-database' }
  /** A command of RMAN. */
  | { readonly kind: 'rman'; readonly command: 'restore' | 'recover' | 'list' }
  | { readonly kind: 'shutdown'; readonly mode: 'IMMEDIATE' | 'ABORT' }
  | { readonly kind: 'set-container'; readonly name: string }
  | {
      readonly kind: 'create-pdb';
      readonly name: string;
      /** A pluggable database of this one, a .pdb file, or none: created from the seed. */
      readonly from: string | null;
      readonly using: string | null;
      readonly convert: readonly [string, string];
      readonly password: string | null;
    }
  | { readonly kind: 'unplug-pdb'; readonly name: string; readonly file: string }
  | { readonly kind: 'alter-pdb'; readonly name: string; readonly action: 'OPEN' | 'CLOSE' };

type Token = { readonly is: 'word' | 'quoted' | 'string' | 'sign'; readonly text: string };

const tokens = (sql: string): Token[] => {
  const found: Token[] = [];
  const pattern = /\s+|([A-Za-z_][\w$#]*)|"([^"]*)"|'((?:[^']|'')*)'|(\d+[KMG]?)|([(),=*|])|(.)/gy;
  for (const [, word, quoted, string, number, sign, other] of sql.trim().replace(/;$/, '').matchAll(pattern)) {
    if (word !== undefined) found.push({ is: 'word', text: word });
    else if (quoted !== undefined) found.push({ is: 'quoted', text: quoted });
    else if (string !== undefined) found.push({ is: 'string', text: string.replaceAll("''", "'") });
    else if (number !== undefined) found.push({ is: 'word', text: number });
    else if (sign !== undefined) found.push({ is: 'sign', text: sign });
    else if (other !== undefined) throw new OraError('ORA-00900', other);
  }
  return found;
};

class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  constructor(sql: string) {
    this.#tokens = tokens(sql);
  }
  /** Consumes these words if they are next. */
  takes(...words: readonly string[]): boolean {
    const fits = words.every((word, at) => {
      const token = this.#tokens[this.#at + at];
      return token !== undefined && token.is !== 'quoted' && token.is !== 'string' && token.text.toUpperCase() === word;
    });
    if (fits) this.#at += words.length;
    return fits;
  }
  needs(...words: readonly string[]): void {
    if (!this.takes(...words)) throw this.#unexpected();
  }
  name(): string {
    const token = this.#tokens[this.#at++];
    if (token?.is === 'quoted') return token.text;
    if (token?.is !== 'word') throw this.#unexpected();
    return token.text.toUpperCase();
  }
  text(): string {
    const token = this.#tokens[this.#at++];
    if (token?.is !== 'string' && token?.is !== 'quoted') throw this.#unexpected();
    return token.text;
  }
  /** The password of IDENTIFIED BY and similar clauses: a literal, or EXTERNAL STORE. */
  password(): Password {
    return this.takes('EXTERNAL', 'STORE') ? 'external' : { literal: this.literal() };
  }
  /** Where a release has no EXTERNAL STORE. */
  literal(): string {
    if (this.takes('EXTERNAL', 'STORE')) throw new OraError('ORA-00988', 'IDENTIFIED BY EXTERNAL STORE');
    const token = this.#tokens[this.#at++];
    if (token === undefined || (token.is !== 'quoted' && token.is !== 'word')) throw new OraError('ORA-00988');
    if (token.text === '') throw new OraError('ORA-01741');
    return token.text;
  }
  /** The value of a parameter: a text, or a word such as a number. */
  value(): string {
    return this.#tokens[this.#at]?.is === 'word' ? this.name() : this.text();
  }
  /** A text, if one is next. */
  textIfAny(): string | null {
    return this.#tokens[this.#at]?.is === 'string' ? this.text() : null;
  }
  ends(): void {
    if (this.#at !== this.#tokens.length) throw this.#unexpected();
  }
  #unexpected(): OraError {
    return new OraError('ORA-00922', this.#tokens[this.#at]?.text ?? 'end of the statement');
  }
}

const identifiedBy = (sql: Reader): Password => {
  sql.needs('IDENTIFIED', 'BY');
  return sql.password();
};
const literalBy = (sql: Reader): string => {
  sql.needs('IDENTIFIED', 'BY');
  return sql.literal();
};
const backup = (sql: Reader): Backup => {
  if (!sql.takes('WITH', 'BACKUP')) return null;
  return { name: sql.takes('USING') ? sql.text() : null };
};
const reach = (sql: Reader): Reach => {
  if (!sql.takes('CONTAINER')) return 'current';
  sql.needs('=');
  if (sql.takes('ALL')) return 'all';
  sql.needs('CURRENT');
  return 'current';
};

/** SET KEY, and its variants, whose grammar has no CONTAINER. */
const setKeyStatement = (sql: Reader): Statement => {
  if (sql.takes('USING', 'TAG')) sql.text();
  let force = sql.takes('FORCE', 'KEYSTORE');
  const password = identifiedBy(sql);
  force = sql.takes('FORCE', 'KEYSTORE') || force;
  const reverse = sql.takes('REVERSE', 'MIGRATE', 'USING') ? sql.password() : null;
  const migrate = reverse === null && sql.takes('MIGRATE', 'USING') ? sql.password() : null;
  const made = { kind: 'set-key', password, force, migrate, reverse, old: false } as const;
  const plain = reverse === null && migrate === null;
  return { ...made, backup: backup(sql), container: plain ? reach(sql) : 'current' };
};

const addSecret = (sql: Reader): Statement => {
  const secret = sql.text();
  sql.needs('FOR', 'CLIENT');
  const client = sql.text();
  const kind = 'add-secret';
  if (sql.takes('TO')) {
    const local = sql.takes('LOCAL');
    sql.needs('AUTO_LOGIN', 'KEYSTORE');
    const store = { place: sql.text(), local };
    return { kind, secret, client, store, password: 'external', force: false, backup: null };
  }
  const force = sql.takes('FORCE', 'KEYSTORE');
  return { kind, secret, client, store: null, force, password: identifiedBy(sql), backup: backup(sql) };
};

const keyManagement = (sql: Reader): Statement => {
  if (sql.takes('SET', 'KEYSTORE', 'OPEN')) {
    sql.takes('FORCE', 'KEYSTORE');
    return { kind: 'open-keystore', password: identifiedBy(sql), container: reach(sql), old: false };
  }
  if (sql.takes('SET', 'KEYSTORE', 'CLOSE')) {
    const password = sql.takes('IDENTIFIED', 'BY') ? sql.password() : null;
    return { kind: 'close-keystore', password, container: reach(sql), old: false };
  }
  if (sql.takes('SET', 'KEY') || sql.takes('SET', 'ENCRYPTION', 'KEY')) return setKeyStatement(sql);
  if (sql.takes('CREATE', 'KEYSTORE'))
    return { kind: 'create-keystore', place: sql.textIfAny(), password: literalBy(sql) };
  const local = sql.takes('CREATE', 'LOCAL', 'AUTO_LOGIN', 'KEYSTORE');
  if (local || sql.takes('CREATE', 'AUTO_LOGIN', 'KEYSTORE')) {
    sql.needs('FROM', 'KEYSTORE');
    return { kind: 'create-auto-login', place: sql.textIfAny(), password: literalBy(sql), local };
  }
  if (sql.takes('ALTER', 'KEYSTORE', 'PASSWORD')) {
    sql.takes('FORCE', 'KEYSTORE');
    const password = literalBy(sql);
    sql.needs('SET');
    return { kind: 'alter-password', password, next: sql.literal(), backup: backup(sql) };
  }
  if (sql.takes('SWITCHOVER', 'TO', 'LIBRARY')) {
    const library = sql.text();
    sql.needs('FOR', 'ALL', 'CONTAINERS');
    return { kind: 'switchover', library };
  }
  sql.needs('ADD', 'SECRET');
  return addSecret(sql);
};

const alterSystem = (sql: Reader): Statement => {
  if (sql.takes('SWITCH', 'LOGFILE')) return { kind: 'switch-logfile' };
  sql.needs('SET');
  if (sql.takes('ENCRYPTION', 'WALLET', 'OPEN'))
    return { kind: 'open-keystore', password: { literal: literalBy(sql) }, container: 'current', old: true };
  if (sql.takes('ENCRYPTION', 'WALLET', 'CLOSE')) {
    const password = sql.takes('IDENTIFIED', 'BY') ? { literal: sql.literal() } : null;
    return { kind: 'close-keystore', password, container: 'current', old: true };
  }
  if (sql.takes('ENCRYPTION', 'KEY')) {
    const password = { literal: literalBy(sql) };
    if (sql.takes('REVERSE')) throw new OraError('ORA-02065', 'REVERSE MIGRATE');
    const migrate = sql.takes('MIGRATE', 'USING') ? { literal: sql.literal() } : null;
    const none = { force: false, backup: null, container: 'current', reverse: null } as const;
    return { kind: 'set-key', password, migrate, old: true, ...none };
  }
  const name = sql.name();
  sql.needs('=');
  const value = sql.value();
  let scope = 'BOTH';
  if (sql.takes('SCOPE')) {
    sql.needs('=');
    scope = sql.name();
  }
  // SID = '*' names all instances of a cluster, which is the default: nothing is to be recorded.
  if (sql.takes('SID')) {
    sql.needs('=');
    sql.text();
  }
  return { kind: 'set-parameter', name, value, scope };
};

const createTablespace = (sql: Reader): Statement => {
  const name = sql.name();
  sql.needs('DATAFILE');
  const file = sql.text();
  if (sql.takes('SIZE')) sql.name();
  let encrypted = false;
  if (sql.takes('ENCRYPTION')) {
    if (sql.takes('USING')) sql.text();
    encrypted = sql.takes('ENCRYPT');
    if (sql.takes('DEFAULT', 'STORAGE', '(')) {
      sql.needs('ENCRYPT', ')');
      encrypted = true;
    }
  }
  return { kind: 'create-tablespace', name, file, encrypted };
};

const alterTablespace = (sql: Reader): Statement => {
  const name = sql.name();
  const kind = 'alter-tablespace';
  if (sql.takes('READ', 'ONLY')) return { kind, name, action: 'read-only' };
  if (sql.takes('READ', 'WRITE')) return { kind, name, action: 'read-write' };
  sql.needs('ENCRYPTION', 'ONLINE');
  if (sql.takes('USING')) sql.text();
  const action = sql.takes('ENCRYPT') ? 'encrypt' : sql.takes('REKEY') ? 'rekey' : 'decrypt';
  if (action === 'decrypt') sql.needs('DECRYPT');
  return { kind, name, action };
};

const createTable = (sql: Reader): Statement => {
  const name = sql.name();
  sql.needs('(');
  sql.name();
  sql.needs('VARCHAR2', '(');
  sql.name();
  sql.needs(')');
  const encrypted = sql.takes('ENCRYPT');
  if (encrypted && sql.takes('USING')) sql.text();
  sql.needs(')', 'TABLESPACE');
  return { kind: 'create-table', name, tablespace: sql.name(), encrypted };
};

const createPdb = (sql: Reader): Statement => {
  const name = sql.name();
  const from = sql.takes('FROM') ? sql.name() : null;
  const using = from === null && sql.takes('USING') ? sql.text() : null;
  sql.takes('COPY');
  let convert: readonly [string, string] = ['', ''];
  if (sql.takes('FILE_NAME_CONVERT')) {
    sql.needs('=', '(');
    const a = sql.text();
    sql.needs(',');
    convert = [a, sql.text()];
    sql.needs(')');
  }
  const password = sql.takes('KEYSTORE') ? literalBy(sql) : null;
  return { kind: 'create-pdb', name, from, using, convert, password };
};

const alterPdb = (sql: Reader): Statement => {
  const name = sql.name();
  if (sql.takes('UNPLUG', 'INTO')) return { kind: 'unplug-pdb', name, file: sql.text() };
  if (sql.takes('OPEN')) {
    sql.takes('READ', 'WRITE');
    return { kind: 'alter-pdb', name, action: 'OPEN' };
  }
  sql.needs('CLOSE');
  sql.takes('IMMEDIATE');
  return { kind: 'alter-pdb', name, action: 'CLOSE' };
};

const insert = (sql: Reader): Statement => {
  const table = sql.name();
  sql.needs('VALUES', '(');
  const text = sql.text();
  sql.needs(')');
  return { kind: 'insert', table, text };
};

/** Columns and conditions are the caller's affair: a view answers all its rows. */
const select = (sql: string): Statement => {
  // Every table here is of one owner.
  const [, from = ''] = /\bFROM\s+(?:[\w$]+\.)?([\w$]+)/i.exec(sql) ?? [];
  if (from === '') throw new OraError('ORA-00900');
  return { kind: 'select', from: from.toUpperCase(), count: /^\s*SELECT\s+COUNT\(\*\)/i.test(sql) };
};

const verbs: readonly (readonly [readonly string[], (sql: Reader) => Statement])[] = [
  [['ADMINISTER', 'KEY', 'MANAGEMENT'], keyManagement],
  [['ALTER', 'SYSTEM'], alterSystem],
  [['CREATE', 'TABLESPACE'], createTablespace],
  [['ALTER', 'TABLESPACE'], alterTablespace],
  [['CREATE', 'TABLE'], createTable],
  [['INSERT', 'INTO'], insert],
  [['CREATE', 'PLUGGABLE', 'DATABASE'], createPdb],
  [['ALTER', 'PLUGGABLE', 'DATABASE'], alterPdb],
  [['ALTER', 'SESSION', 'SET', 'CONTAINER', '='], (sql) => ({ kind: 'set-container', name: sql.name() })],
  [
    ['ALTER', 'DATABASE', 'OPEN'],
    (sql) => {
      sql.takes('RESETLOGS');
      return { kind: 'open-database' };
    },
  ],
  [['RESTORE', 'DATABASE'], () => ({ kind: 'rman', command: 'restore' })],
  [['RECOVER', 'DATABASE'], () => ({ kind: 'rman', command: 'recover' })],
  [['LIST', 'BACKUP', 'SUMMARY'], () => ({ kind: 'rman', command: 'list' })],
  [['STARTUP'], (sql) => ({ kind: 'startup', mount: sql.takes('MOUNT') })],
  [['SHUTDOWN', 'IMMEDIATE'], () => ({ kind: 'shutdown', mode: 'IMMEDIATE' })],
  [['SHUTDOWN', 'ABORT'], () => ({ kind: 'shutdown', mode: 'ABORT' })],
];

/** Throws the OraError that the database's parser would give. */
export const parseStatement = (text: string): Statement => {
  if (/^\s*SELECT\b/i.test(text)) return select(text);
  const sql = new Reader(text);
  const verb = verbs.find(([words]) => sql.takes(...words));
  if (verb === undefined) throw new OraError('ORA-00900');
  const statement = verb[1](sql);
  sql.ends();
  return statement;
};
