// The keystores of an instance: which are configured, how they open, by a person or on their own,
// and how they close; the statements about the software keystore; and the heartbeat of gen0.
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KeystoreKind } from './control-file.ts';
import { type Core, containerReach, localMark, now, type Session, secretName } from './core.ts';
import { errorOf, OraError } from './ora-error.ts';
import type { OpenKeystores } from './process-table.ts';
import type { Backup, Password, Statement } from './statements.ts';
import type { Row } from './views.ts';

/** The keystores of the configuration, the first one first. */
export const readConfiguration = (core: Core): readonly KeystoreKind[] => {
  if (core.of.wallet.value === 'TDE_CONFIGURATION') {
    const value = core.control.parameters.TDE_CONFIGURATION ?? 'KEYSTORE_CONFIGURATION=FILE';
    const [, list = 'FILE'] = /KEYSTORE_CONFIGURATION\s*=\s*([A-Z|]+)/.exec(value) ?? [];
    return list.split('|').map((word) => (word === 'HSM' ? 'H' : 'F'));
  }
  const text = core.sqlnet();
  if (!/METHOD\s*=\s*HSM/.test(text)) return ['F'];
  return /DIRECTORY/.test(text) ? ['H', 'F'] : ['H'];
};

/**
 * How a process opens the token under a password, which a store of
 * EXTERNAL_KEYSTORE_CREDENTIAL_LOCATION may have.
 */
export const tokenBy = (core: Core, password: Password): NonNullable<OpenKeystores['H']> => {
  if (password !== 'external') return { pin: password.literal };
  const place = core.static.EXTERNAL_KEYSTORE_CREDENTIAL_LOCATION;
  const store = place === undefined ? undefined : join(core.at(place), 'cwallet.sso');
  if (store === undefined || !existsSync(store)) throw new OraError('ORA-00988', 'IDENTIFIED BY EXTERNAL STORE');
  return { secret: secretName, store };
};
/** The password of the software keystore: no test stores it elsewhere. */
export const literal = (password: Password): string => {
  if (password === 'external') throw new OraError('ORA-00988', 'IDENTIFIED BY EXTERNAL STORE');
  return password.literal;
};

/** At a start: a wallet with an automatic login, and with it the token whose PIN it has. */
export const openAutomatically = async (core: Core): Promise<void> => {
  const [, madeOn] = /\nLOCAL (.*)\n$/.exec(readFileSync(core.automatic, 'latin1')) ?? [];
  if (madeOn !== undefined && madeOn !== core.host.base)
    return core.alert(`${new OraError('ORA-28353', 'the local auto-login keystore is of another host').message}`);
  const all = core.control.containers.map(({ id }) => id);
  core.open = { F: { automatic: true }, ...(core.order.includes('H') ? { H: { secret: secretName } } : {}) };
  try {
    await afterOpen(core, all);
  } catch (error) {
    core.open = {};
    if (!(error instanceof OraError)) throw error;
    core.alert(`${error.message}: automatic login`);
  }
};

export const openKeystore = async (
  core: Core,
  statement: Statement & { kind: 'open-keystore' },
  session: Session,
): Promise<readonly Row[]> => {
  const containers = containerReach(statement, core.control.containers, core.container(session)).map(({ id }) => id);
  const there = Object.keys(core.open).length > 0;
  if (there && containers.every((id) => core.openIn.has(id))) throw new OraError('ORA-28354');
  const before = { ...core.open };
  const [first] = core.order;
  const { password } = statement;
  if (core.order.includes('H') && core.open.H === undefined) core.open.H = tokenBy(core, password);
  if (core.order.includes('F') && core.open.F === undefined && password !== 'external') {
    // The wallet opens as well if the password is its own; another password is an error only if the
    // wallet is first.
    const opened = await core.table.step(session.process, 'wallet-open', {
      path: core.wallet,
      password: password.literal,
    });
    if (opened.ok) core.open.F = { password: password.literal };
    else if (first === 'F') {
      core.open = before;
      throw errorOf(opened);
    }
  }
  try {
    await afterOpen(core, containers, session);
  } catch (error) {
    core.open = before;
    throw error;
  }
  return [];
};

/** Steps of an open: the label of each container's key is searched, and gen0 loads it. */
const afterOpen = async (core: Core, containers: readonly number[], session?: Session): Promise<void> => {
  const by = session?.process ?? core.process('fg0');
  await core.attach(by);
  for (const container of core.control.containers.filter(({ id }) => containers.includes(id)))
    for (const key of Object.values(container.keys)) {
      if (key.keystore !== core.order[0] && core.open[key.keystore] === undefined) continue;
      const { found = 0 } = await core.do(by, 'find', { id: key.id, keystore: key.keystore, afresh: true });
      if (found > 0) continue;
      // Among several, a pluggable database without its key does not keep the others closed.
      if (container.id === 1 || containers.length === 1) throw new OraError('ORA-28353', `no master key ${key.id}`);
      core.alert(`${container.name}: no master key ${key.id}`);
    }
  for (const id of containers) core.openIn.add(id);
  core.alert(`keystore opened: ${core.order.map((kind) => (kind === 'H' ? 'HSM' : 'FILE')).join('|')}`);
  await takeUpHeartbeat(core);
};

export const closeKeystore = async (
  core: Core,
  statement: Statement & { kind: 'close-keystore' },
  session: Session,
): Promise<readonly Row[]> => {
  const one = core.container(session);
  const root = core.control.containers[0];
  if (Object.keys(core.open).length === 0) throw new OraError('ORA-28365');
  const automatic = core.open.F !== undefined && 'automatic' in core.open.F;
  if (!statement.old && statement.password === null && !automatic) throw new OraError('ORA-28389');
  const containers = one === root || statement.container === 'all' ? core.control.containers : [one];
  for (const { id } of containers) core.openIn.delete(id);
  if (core.openIn.size === 0) await closeAll(core);
  return [];
};

const closeAll = async (core: Core): Promise<void> => {
  core.open = {};
  core.openIn.clear();
  core.forgetHeartbeats();
  await core.table.detachAll();
};

// ---- the software keystore ----------------------------------------------------------------------

export const createKeystore = async (
  core: Core,
  { place, password }: Statement & { kind: 'create-keystore' },
  session: Session,
): Promise<readonly Row[]> => {
  const path = place === null ? core.wallet : join(core.at(place), 'ewallet.p12');
  mkdirSync(dirname(path), { recursive: true });
  await core.do(session.process, 'wallet-create', { path, password });
  return [];
};

export const createAutoLogin = async (
  core: Core,
  { place, password, local }: Statement & { kind: 'create-auto-login' },
  session: Session,
): Promise<readonly Row[]> => {
  const from = place === null ? core.walletDirectory : core.at(place);
  const target = join(from, 'cwallet.sso');
  await core.do(session.process, 'wallet-automatic', { path: join(from, 'ewallet.p12'), password, target });
  if (local) appendFileSync(target, localMark(core.host));
  return [];
};

export const alterPassword = async (
  core: Core,
  { password, next, backup }: Statement & { kind: 'alter-password' },
  session: Session,
): Promise<readonly Row[]> => {
  backUpWallet(core, backup);
  await core.do(session.process, 'wallet-password', { path: core.wallet, password, new: next });
  return [];
};

/**
 * A store of its own, which only a secret opens: what EXTERNAL_KEYSTORE_CREDENTIAL_LOCATION names.
 */
const addToStore = async (core: Core, name: string, value: string, store: string, local: boolean, session: Session) => {
  const folder = core.at(store);
  mkdirSync(folder, { recursive: true });
  const [path, password, target] = [join(folder, 'ewallet.p12'), 'unused', join(folder, 'cwallet.sso')];
  await core.do(session.process, 'wallet-create', { path, password });
  await core.do(session.process, 'wallet-secret', { path, password, name, value });
  await core.do(session.process, 'wallet-automatic', { path, password, target });
  rmSync(path);
  if (local) appendFileSync(target, localMark(core.host));
};

/**
 * A secret goes into the first keystore of the configuration. The token takes it too, under any
 * PIN: then no error is shown, and no automatic login finds it.
 */
export const addSecret = async (
  core: Core,
  { secret, client, password, backup, force, store }: Statement & { kind: 'add-secret' },
  session: Session,
): Promise<readonly Row[]> => {
  if (store !== null) {
    await addToStore(core, client, secret, store.place, store.local, session);
    return [];
  }
  if (core.order[0] === 'H') {
    if (core.open.H === undefined && !force) throw new OraError('ORA-28365');
    core.alert(`secret ${client} added to the HSM keystore`);
    return [];
  }
  if (!force && core.open.F === undefined) throw new OraError('ORA-28365');
  if (!force && core.open.F !== undefined && 'automatic' in core.open.F) throw new OraError('ORA-28417');
  backUpWallet(core, backup);
  const given = { path: core.wallet, password: literal(password), name: client, value: secret };
  await core.do(session.process, 'wallet-secret', given);
  return [];
};

export const backUpWallet = (core: Core, backup: Backup): void => {
  if (!existsSync(core.wallet)) return;
  if (backup === null) throw new OraError('ORA-46631');
  const stamp = now().replace(/\D/g, '').slice(0, 14);
  const name = `ewallet_${stamp}${backup.name === null ? '' : `_${backup.name}`}.p12`;
  copyFileSync(core.wallet, join(core.walletDirectory, name));
};

// ---- heartbeat ----------------------------------------------------------------------------------

/**
 * gen0 takes up the key of each open container that it has none of; after a rotation it keeps the
 * earlier one until a restart.
 */
export const takeUpHeartbeat = async (core: Core): Promise<void> => {
  if (core.open.H === undefined) return;
  for (const { id, keys } of core.control.containers) {
    const [key] = Object.values(keys);
    if (key?.keystore !== 'H' || !core.openIn.has(id) || core.heartbeats.keys.has(id)) continue;
    const gen0 = core.process('gen0');
    await core.attach(gen0);
    const { found = 0 } = await core.do(gen0, 'find', { id: key.id });
    if (found > 0) core.heartbeats.keys.set(id, key.id);
  }
};

/**
 * Lets time pass: gen0 calls every three seconds of it, for all keys or for as many as
 * HEARTBEAT_BATCH_SIZE says.
 */
export const advance = async (core: Core, seconds: number): Promise<void> => {
  const before = Math.floor(core.clock / core.profile.heartbeatSeconds.value);
  core.clock += seconds;
  const periods = Math.floor(core.clock / core.profile.heartbeatSeconds.value) - before;
  for (let period = 0; period < periods; period += 1) {
    const keys = [...core.heartbeats.keys];
    const most = Number(core.control.parameters.HEARTBEAT_BATCH_SIZE ?? keys.length);
    for (let each = 0; each < Math.min(most, keys.length) && core.heartbeats.keys.size > 0; each += 1) {
      const [container, key] = keys[core.heartbeats.next % keys.length] ?? [0, ''];
      core.heartbeats.next += 1;
      await beat(core, container, key);
    }
  }
};

const beat = async (core: Core, container: number, key: string): Promise<void> => {
  const answer = await core.table.step(core.process('gen0'), 'heartbeat', { id: key });
  if (answer.ok) {
    core.heartbeats.failures = 0;
    return;
  }
  core.heartbeats.failures += 1;
  core.alert(`gen0: heartbeat failed: ${errorOf(answer).message}`);
  if (core.heartbeats.failures < core.profile.failuresToClose.value) return;
  core.alert(`gen0: keystore closed`);
  if (container === 1) return await closeAll(core);
  core.openIn.delete(container);
  core.heartbeats.keys.delete(container);
};
