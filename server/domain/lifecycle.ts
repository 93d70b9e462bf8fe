// The life of a key: one table, state x event. Pure. A cell names the next state; null refuses the
// event. A cell that names its own row's state changes flags or copies only.

import type { VaultState } from './vault.ts';

export const keyStates = ['active', 'disabled', 'soft-deleted', 'destroyed'] as const;
export type KeyState = (typeof keyStates)[number];

export const keyEvents = ['enable', 'disable', 'soft-delete', 're-import', 'destroy'] as const;
export type KeyEvent = (typeof keyEvents)[number];

export const lifecycle = {
  active: {
    enable: 'active',
    disable: 'disabled',
    'soft-delete': 'soft-deleted',
    're-import': null,
    destroy: 'destroyed',
  },
  disabled: {
    enable: 'active',
    disable: 'disabled',
    'soft-delete': 'soft-deleted',
    're-import': null,
    destroy: 'destroyed',
  },
  'soft-deleted': {
    enable: 'soft-deleted',
    disable: 'soft-deleted',
    'soft-delete': 'soft-deleted',
    're-import': 'soft-deleted',
    destroy: 'destroyed',
  },
  destroyed: { enable: null, disable: null, 'soft-delete': null, 're-import': null, destroy: null },
} as const satisfies Record<KeyState, Record<KeyEvent, KeyState | null>>;

/** What a key can do for its users: its own state, unless its vault stops its use. */
export type EffectiveState = KeyState | 'vault-disabled' | 'vault-deleted';
export const effectiveState = (state: KeyState, vault: VaultState): EffectiveState => {
  if (state === 'destroyed' || state === 'soft-deleted') return state;
  if (vault === 'deleted') return 'vault-deleted';
  return vault === 'disabled' && state === 'active' ? 'vault-disabled' : state;
};

/** The state after the event, or null when the event is refused in this state. */
export const nextState = (state: KeyState, event: KeyEvent): KeyState | null => lifecycle[state][event];
