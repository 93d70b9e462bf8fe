// What `dke provider` calls: options as they were typed become those of the installer.
import { resolve } from 'node:path';
import { type Checked, checkProvider, defaultConfigPath } from './check.ts';
import { type InstallOptions, type InstallReport, install, rollback, uninstall, upgrade } from './install.ts';
import { defaultBase, defaultLogDirectory, type Layout, type LayoutName, layoutOf } from './layout.ts';
import { parseOwner } from './owner.ts';
import { gatherPayload } from './payload.ts';
import { unitFolder } from './units.ts';

export interface CommandOptions {
  readonly base?: string;
  readonly layout?: LayoutName;
  readonly owner?: string;
  readonly logDirectory?: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly systemd?: boolean;
  readonly unitDirectory?: string;
  readonly purge?: boolean;
  readonly conf?: readonly string[];
  readonly socket?: string;
  readonly distinct?: boolean;
}

const layoutIn = ({ base = defaultBase, layout = 'hsm' }: CommandOptions): Layout => layoutOf(layout, resolve(base));
const ownerIn = ({ owner }: CommandOptions) => (owner === undefined ? undefined : parseOwner(owner));

/** Throws InstallError. */
export const run = (action: InstallReport['action'], options: CommandOptions): InstallReport => {
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

export const check = (options: CommandOptions): Promise<readonly Checked[]> =>
  checkProvider({
    layout: layoutIn(options),
    owner: ownerIn(options),
    configPaths: options.conf ?? [],
    socket: options.socket,
    distinct: options.distinct ?? false,
  });
