// The addresses of keys, and the words of their filters.

import type { Choice } from '../ui/fields/field.tsx';

export const keysPath = '/api/keys';
export const keyPath = (id: string): string => `${keysPath}/${encodeURIComponent(id)}`;

export const keyStates: readonly Choice[] = [
  { value: 'active', text: 'Active' },
  { value: 'disabled', text: 'Disabled' },
  { value: 'soft-deleted', text: 'Soft-deleted' },
  { value: 'destroyed', text: 'Destroyed' },
];

export const keyKinds: readonly Choice[] = [
  { value: 'general', text: 'General-purpose' },
  { value: 'master', text: 'TDE master key' },
];
