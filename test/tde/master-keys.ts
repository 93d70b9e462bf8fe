// SET KEY with its variants: a new master key for a container, and the keys of the database wrapped
// under it.
import { existsSync } from 'node:fs';
import type { Container, DataFile, KeystoreKind } from './control-file.ts';
import { type Core, containerReach, now, type Session } from './core.ts';
import { under } from './current-key.ts';
import { backUpWallet, literal, takeUpHeartbeat, tokenBy } from './keystores.ts';
import { OraError } from './ora-error.ts';
import type { DatabaseProcess } from './process.ts';
import type { MasterKeyRole } from './profile.ts';
import { switchLog } from './redo.ts';
import type { Statement } from './statements.ts';
import type { Row } from './views.ts';

type SetKey = Statement & { kind: 'set-key' };

export const setKey = async (core: Core, statement: SetKey, session: Session): Promise<readonly Row[]> => {
  if (statement.reverse !== null && !core.profile.reverseMigration.value) throw new OraError('ORA-02065');
  if (statement.container === 'all' && session.container !== 1) throw new OraError('ORA-65040');
  const containers = containerReach(statement, core.control.containers, core.container(session));
  const target = core.order[0] ?? 'F';
  const by = session.process;
  const before = { ...core.open };
  try {
    refuseOtherKeystore(core, statement, target, core.container(session));
    await openForKey(core, statement, target, by);
    await core.attach(by);
  } catch (error) {
    core.open = before;
    throw error;
  }
  // Only open containers can have their keys wrapped again.
  for (const container of containers.filter(({ open }) => open)) await setKeyOf(core, container, target, statement, by);
  if (statement.reverse !== null) {
    core.open = core.order.includes('H') ? core.open : { F: { password: literal(statement.password) } };
    core.forgetHeartbeats();
  }
  if (containers.includes(core.control.containers[0] as Container)) await switchLog(core);
  await takeUpHeartbeat(core);
  const closed = containers.filter(({ open }) => !open).map(({ name }) => name);
  if (closed.length > 0) throw new OraError('ORA-46663', closed.join(', '));
  return [];
};

/**
 * With TDE_CONFIGURATION, a key is not set in a keystore that is not the one of the current key,
 * unless it is migrated.
 */
const refuseOtherKeystore = (core: Core, statement: SetKey, target: KeystoreKind, one: Container): void => {
  if (core.of.wallet.value !== 'TDE_CONFIGURATION') return;
  const [current] = Object.values(one.keys);
  const root = Object.values(core.control.containers[0]?.keys ?? {})[0];
  if (current === undefined || statement.migrate !== null) return;
  if (statement.reverse !== null) {
    if (core.of.reverse.value === 'FILE|HSM' && !core.order.includes('H')) throw new OraError('ORA-28414');
  } else if (target === 'F' && root?.keystore === 'H') throw new OraError('ORA-28414');
  else if (target === 'H' && root?.keystore === 'F') throw new OraError('ORA-28415');
};

/**
 * The keystores that must be open for a SET KEY: the one for the new key, and the one of the
 * current keys.
 */
const openForKey = async (core: Core, statement: SetKey, target: KeystoreKind, by: DatabaseProcess): Promise<void> => {
  const { password, migrate, reverse, force, old, backup } = statement;
  if (reverse !== null) {
    // A reverse migration opens both keystores: the wallet under its password, and the token for
    // reading.
    if (target !== 'F') throw new OraError('ORA-28353', 'the first keystore is not FILE');
    backUpWallet(core, backup);
    core.open = { F: { password: literal(password) }, H: tokenBy(core, reverse) };
  } else if (migrate !== null) {
    if (target !== 'H' || !core.order.includes('F')) throw new OraError('ORA-28353', 'the first keystore is not HSM');
    if (!old) backUpWallet(core, backup);
    core.open = { H: core.open.H ?? tokenBy(core, password), F: { password: literal(migrate) } };
  } else {
    // In 11g, setting the key opens a closed keystore and creates a missing wallet.
    if (old && target === 'F' && !existsSync(core.wallet))
      await core.do(by, 'wallet-create', { path: core.wallet, password: literal(password) });
    if (core.open[target] === undefined && (force || old)) {
      if (target === 'H') core.open.H = tokenBy(core, password);
      else core.open.F = { password: literal(password) };
    }
    if (core.open[target] === undefined) throw new OraError('ORA-28365');
    if (target === 'H') tokenBy(core, password);
    if (target === 'F' && !old) backUpWallet(core, backup);
  }
};

/**
 * Creates a new master key for one container, rewraps its keys under it, and makes it the
 * container's key.
 */
const setKeyOf = async (
  core: Core,
  container: Container,
  keystore: KeystoreKind,
  statement: SetKey,
  by: DatabaseProcess,
): Promise<void> => {
  const software = keystore === 'F' ? { path: core.wallet, password: literal(statement.password) } : {};
  for (const role of core.profile.masterKeys) {
    const about = `${core.control.name} ${container.name} ${now()}`;
    const { id = '' } = await core.do(by, 'generate', { role: role.idPrefix, keystore, about, ...software });
    const key = { id, container: container.id, keystore, createdAt: now(), activatedAt: null as string | null };
    core.control.keys.push(key);
    core.save();
    for (const file of core.control.files.filter((each) => each.container === container.id && goesBy(each, role)))
      if (file.encrypted && !file.readOnly)
        await core.do(by, 'rewrap', {
          path: core.path(file.file),
          file: file.number,
          redo: core.redo(),
          ...under(core, file.kind, { id, keystore }),
        });
    container.keys[role.purpose] = { id, keystore };
    key.activatedAt = now();
    core.save();
    core.alert(`new master key of ${container.name}: ${id}`);
  }
  core.openIn.add(container.id);
};

const goesBy = (file: DataFile, role: MasterKeyRole): boolean => role.purpose === 'all' || role.purpose === file.kind;
