// What `dke provider` calls: options as they were typed become those of the installer.
import { join, resolve } from 'node:path';
import type { Installer, ProviderOptions } from '../../server/contract/provider.ts';
import { checkProvider, defaultConfigPath } from './check.ts';
import { install, rollback, uninstall, upgrade } from './install.ts';
import { defaultBase, defaultLogDirectory, type Layout, layoutOf } from './layout.ts';
import { parseOwner } from './owner.ts';
import { gatherPayload } from './payload.ts';
import type { InstallOptions } from './run.ts';
import { traceOf } from './trace.ts';
import { unitFolder } from './units.ts';

const layoutIn = ({ base = defaultBase, layout = 'hsm' }: ProviderOptions): Layout => layoutOf(layout, resolve(base));
const ownerIn = ({ owner }: ProviderOptions) => (owner === undefined ? undefined : parseOwner(owner));

/** Throws InstallError. */
export const run: Installer['run'] = (action, options) => {
  const units = resolve(options.unitDirectory ?? unitFolder);
  const common: InstallOptions = {
    layout: layoutIn(options),
    owner: ownerIn(options),
    logDirectory: resolve(options.logDirectory ?? defaultLogDirectory),
    dryRun: options.dryRun ?? false,
    force: options.force ?? false,
    unitFolder: options.systemd === true || action === 'uninstall' ? units : null,
  };
  switch (action) {
    case 'install':
      return install(common, gatherPayload());
    case 'upgrade':
      return upgrade(common, gatherPayload());
    case 'rollback':
      return rollback(common);
    case 'uninstall': {
      const configPath = options.conf?.[0] ?? defaultConfigPath;
      return uninstall({ ...common, configPath, purge: options.purge === true ? configPath : null });
    }
  }
};

export const check: Installer['check'] = ({ oracleHome, ...options }) =>
  checkProvider({
    layout: layoutIn(options),
    owner: ownerIn(options),
    configPaths: options.conf ?? [],
    socket: options.socket,
    program: options.program ?? (oracleHome === undefined ? undefined : join(oracleHome, 'bin/oracle')),
    distinct: options.distinct ?? false,
  });

export const trace: Installer['trace'] = traceOf;
