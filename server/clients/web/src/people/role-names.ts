// Names of roles for people.

/** `key-manager` as "Key manager". */
export const titled = (name: string): string =>
  `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`;
