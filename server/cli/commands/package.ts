// `dke package`: the packages for database hosts that the service distributes.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.packages;

export const addPackage = (program: Command): void => {
  const noun = addNoun(program, 'package');
  noun.row(routes.list, 'list', 'Lists the packages that the service distributes ([server] packages_directory).', {
    columns: { NAME: 'name', VERSION: 'version', ARCHITECTURE: 'architecture', BYTES: 'size', SHA256: 'sha256' },
  });
  noun.row(routes.download, 'download <name>', 'Downloads a package.');
};
