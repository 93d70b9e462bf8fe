// The current master key of a container, and how it wraps a key of the database.
import type { Container, DataFile, KeystoreKind, Purpose } from './control-file.ts';
import type { Core } from './core.ts';
import { OraError } from './ora-error.ts';
import { mechanismNumber } from './profile.ts';

/** Parameters of a step that wraps under a master key. */
export const under = (
  { profile: { wrapMechanism, columnMechanism } }: Core,
  kind: DataFile['kind'],
  key: { readonly id: string; readonly keystore: KeystoreKind },
) => {
  const mechanism = mechanismNumber(kind === 'column' ? columnMechanism.value : wrapMechanism.value);
  return { id: key.id, keystore: key.keystore, mechanism };
};

/** The current master key of a container. */
export const currentKeyOf = (core: Core, container: Container, kind: DataFile['kind']) => {
  const purposes: readonly Purpose[] = ['all', kind];
  const key = purposes.map((purpose) => container.keys[purpose]).find((each) => each !== undefined);
  if (!core.openIn.has(container.id)) throw new OraError('ORA-28365');
  if (key === undefined) throw new OraError('ORA-28361');
  return key;
};
