// The life of a key: one table, state x event. Pure. A cell names the next state; null refuses the
// event. A cell that names its own row's state changes flags or copies only.

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

/** The state after the event, or null when the event is refused in this state. */
export const nextState = (state: KeyState, event: KeyEvent): KeyState | null => lifecycle[state][event];
