// Handlers of the packages for database hosts.

import type { Operations } from '../../../operations/index.ts';
import { StreamedFile } from '../export.ts';
import type { Handlers } from './handler.ts';

export const packagesHandlers = ({ packages }: Operations): Handlers['packages'] => ({
  list: async () => ({ items: (await packages.list()).map((each) => ({ ...each })) }),
  download: async ({ path }) => new StreamedFile('application/octet-stream', path.name, await packages.open(path.name)),
});
