// The parameters of an instance, and the views of its keystores.
import { existsSync } from 'node:fs';
import type { KeystoreKind } from './control-file.ts';
import type { Core, Session } from './core.ts';
import { readConfiguration } from './keystores.ts';
import { findLibrary } from './library.ts';
import { OraError } from './ora-error.ts';
import type { Statement } from './statements.ts';
import { type Row, walletRow } from './views.ts';

/** Read when the instance starts: SCOPE = SPFILE. */
export const staticParameters = ['WALLET_ROOT', 'EXTERNAL_KEYSTORE_CREDENTIAL_LOCATION'] as const;
const dynamicParameters = ['TDE_CONFIGURATION', 'PKCS11_LIBRARY_LOCATION', 'HEARTBEAT_BATCH_SIZE'] as const;

const isKnown = (core: Core, name: string): boolean => {
  if (name === 'TDE_CONFIGURATION' || name === 'WALLET_ROOT') return core.of.wallet.value === 'TDE_CONFIGURATION';
  if (name === 'PKCS11_LIBRARY_LOCATION') return core.of.libraryLocation.value;
  if (name === 'EXTERNAL_KEYSTORE_CREDENTIAL_LOCATION') return core.profile.externalStore.value;
  return name === 'HEARTBEAT_BATCH_SIZE' && core.of.heartbeatBatch.value;
};

export const setParameter = (
  core: Core,
  { name, value, scope }: Statement & { kind: 'set-parameter' },
): readonly Row[] => {
  if (!isKnown(core, name)) throw new OraError('ORA-02065', name);
  if (scope !== 'SPFILE' && !dynamicParameters.some((each) => each === name)) throw new OraError('ORA-02095', name);
  if (name === 'PKCS11_LIBRARY_LOCATION') findLibrary(core.host.base, value, process.getuid?.() ?? 0);
  if (name === 'TDE_CONFIGURATION' && scope !== 'SPFILE' && core.static.WALLET_ROOT === undefined)
    throw new OraError('ORA-46693');
  core.control.parameters[name] = value;
  core.save();
  if (name === 'TDE_CONFIGURATION' && scope !== 'SPFILE') core.order = readConfiguration(core);
  return [];
};

/** V$ENCRYPTION_WALLET: of all containers in the root, else of the session's own. */
export const encryptionWallet = async (core: Core, session: Session): Promise<readonly Row[]> => {
  const containers = session.container === 1 ? core.control.containers : [core.container(session)];
  const rows: Row[] = [];
  for (const container of containers) {
    const [key] = Object.values(container.keys);
    const there = core.openIn.has(container.id) && key !== undefined && (await present(core, key, session));
    for (const keystore of core.order)
      rows.push(
        walletRow({
          keystore,
          order: core.order,
          open: core.openIn.has(container.id) ? core.open : {},
          container: container.id,
          hasKey: there,
          wallet: existsSync(core.wallet) || existsSync(core.automatic) ? core.walletDirectory : null,
        }),
      );
  }
  return rows;
};

const present = async (
  core: Core,
  key: { readonly id: string; readonly keystore: KeystoreKind },
  { process: by }: Session,
): Promise<boolean> => {
  if (core.open[key.keystore] === undefined) return false;
  await core.attach(by);
  return ((await core.do(by, 'find', key)).found ?? 0) > 0;
};

/** V$PKCS11_PATH: each process that has loaded a library, and which one. */
export const libraryPaths = (core: Core): readonly Row[] =>
  core.table.libraries().map(([{ role, pid }, path]) => ({ PID: pid, PNAME: role, PKCS11_LIB_PATH: path, CON_ID: 0 }));
