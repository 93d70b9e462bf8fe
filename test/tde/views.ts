// The views by which an administrator checks keystores and keys, V$ENCRYPTION_WALLET and
// V$ENCRYPTION_KEYS, with the columns that docs/databases/oracle.md names.
import type { ControlFile, KeystoreKind, MasterKey } from './control-file.ts';
import type { OpenKeystores } from './process-table.ts';

export type Row = Readonly<Record<string, string | number | null>>;

interface WalletState {
  readonly keystore: KeystoreKind;
  /** The keystores that are configured, the first one first. */
  readonly order: readonly KeystoreKind[];
  readonly open: OpenKeystores;
  readonly container: number;
  /** The container's master key is in its keystore. */
  readonly hasKey: boolean;
  /** The directory of the software keystore; null when there is none in it. */
  readonly wallet: string | null;
}

const statusOf = ({ keystore, open, hasKey, wallet }: WalletState): string => {
  if (open[keystore] !== undefined) return hasKey ? 'OPEN' : 'OPEN_NO_MASTER_KEY';
  return keystore === 'F' && wallet === null ? 'NOT_AVAILABLE' : 'CLOSED';
};
const typeOf = ({ keystore, open }: WalletState): string => {
  if (open[keystore] === undefined) return 'UNKNOWN';
  if (open.F !== undefined && 'automatic' in open.F) return 'AUTO_LOGIN';
  return keystore === 'H' ? 'HSM' : 'PASSWORD';
};

export const walletRow = (state: WalletState): Row => ({
  WRL_TYPE: state.keystore === 'H' ? 'HSM' : 'FILE',
  WRL_PARAMETER: state.keystore === 'H' ? null : state.wallet,
  STATUS: statusOf(state),
  WALLET_TYPE: typeOf(state),
  WALLET_ORDER: state.order.length === 1 ? 'SINGLE' : state.keystore === state.order[0] ? 'PRIMARY' : 'SECONDARY',
  CON_ID: state.container,
});

/** The key history, newest first. */
export const keyRows = (keys: readonly MasterKey[]): readonly Row[] =>
  keys
    .map(({ id, container, keystore, createdAt, activatedAt }) => ({
      KEY_ID: id,
      CREATION_TIME: createdAt,
      ACTIVATION_TIME: activatedAt,
      KEYSTORE_TYPE: keystore === 'H' ? 'HSM' : 'SOFTWARE KEYSTORE',
      CON_ID: container,
    }))
    .reverse();

/** DBA_ENCRYPTED_COLUMNS of one container: a table has one column here. */
export const encryptedColumns = ({ tables, files }: ControlFile, container: number): readonly Row[] =>
  tables
    .filter((table) => table.container === container)
    .filter((table) => files.some(({ number, kind }) => number === table.file && kind === 'column'))
    .map(({ name }) => ({ OWNER: 'SH', TABLE_NAME: name, COLUMN_NAME: 'C', ENCRYPTION_ALG: 'AES 192 bits key' }));
