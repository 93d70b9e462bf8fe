// Finds the provider's programs by their place in the installation: the server's sources know
// nothing of the provider's.

import { existsSync } from 'node:fs';
import { CommandError } from '../terminal/exit-codes.ts';

/** What `provider/<path>` exports, built or as source. */
export const loadProvider = async <Exports>(path: string): Promise<Exports> => {
  const places = ['js', 'ts'].map((ending) => new URL(`../../../provider/${path}.${ending}`, import.meta.url));
  const place = places.find((url) => existsSync(url));
  if (place === undefined)
    throw new CommandError('config', 'the provider is not installed next to this command', {
      hint: 'run npm run build:code',
    });
  return (await import(place.href)) as Exports;
};
