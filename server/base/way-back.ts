// What brings a key back, by what was done to it: the one declaration. The console, the command,
// the descriptions of the API and the table in docs/snapshots.md say it in these words, so that no
// text says that a key is lost where something brings it back, or the opposite. For dialogs before
// an action, the row is the one of the state that follows.

interface Row {
  /** For the page: what happened. */
  readonly what: string;
  readonly way: string;
}
export const waysBack = {
  disabled: { what: 'A key is disabled', way: 'Enable the key: it can be used again at once.' },
  'vault-disabled': {
    what: 'A vault is disabled',
    way: 'Enable the vault: its keys can be used again at once.',
  },
  'vault-deleted': {
    what: 'A vault is deleted',
    way: 'Only a restore of a snapshot from before its deletion brings back the vault and its keys.',
  },
  deleted: {
    what: 'A general-purpose key is deleted',
    way: 'Only a restore of a snapshot from before its deletion brings it back.',
  },
  'deleted-master': {
    what: 'A TDE master key is deleted',
    way: 'Its next use brings it back: the call of the database imports it again from the sealed copy.',
  },
  destroyed: {
    what: 'A key is destroyed',
    way: 'No command and no restore into this service brings it back. Copies that left the service can still open it until they are destroyed.',
  },
  unrecoverable: {
    what: 'A destroyed key is unrecoverable',
    way: 'Nothing brings it back: the service knows no copy that opens it.',
  },
} as const satisfies { readonly [happened: string]: Row };
export type Happened = keyof typeof waysBack;

interface KeyState {
  readonly kind: 'general' | 'master';
  readonly effectiveState: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | 'vault-disabled' | 'vault-deleted';
  readonly unrecoverableAt: string | number | null;
}

/** What brings a key back; null: it can be used. */
export const wayBack = ({ kind, effectiveState, unrecoverableAt }: KeyState): string | null => {
  if (effectiveState === 'active') return null;
  if (effectiveState === 'destroyed') return waysBack[unrecoverableAt === null ? 'destroyed' : 'unrecoverable'].way;
  if (effectiveState === 'soft-deleted') return waysBack[kind === 'master' ? 'deleted-master' : 'deleted'].way;
  return waysBack[effectiveState].way;
};
