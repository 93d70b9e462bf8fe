// What the `dke` command and the provider's installer say to each other. The command finds the installer by its place in the
// installation and loads it when it runs; these types are all that both were compiled with.
import type { CheckedPart } from '../../base/checks.ts';

export type InstallAction = 'install' | 'upgrade' | 'rollback' | 'uninstall';

/** Options of `dke provider`, as they were typed. */
export interface ProviderOptions {
  readonly base?: string;
  readonly layout?: 'hsm' | 'pkcs11';
  readonly owner?: string;
  readonly logDirectory?: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly systemd?: boolean;
  readonly unitDirectory?: string;
  readonly purge?: boolean;
  readonly conf?: readonly string[];
  readonly socket?: string;
  readonly program?: string;
  readonly oracleHome?: string;
  readonly distinct?: boolean;
}

/** A process that has the library loaded, or an agent. */
export interface ProcessOf {
  readonly pid: number;
  readonly name: string;
  /** The file it has mapped was replaced or removed since. */
  readonly old: boolean;
}

export interface InstallReport {
  readonly action: InstallAction;
  readonly changed: boolean;
  readonly dryRun: boolean;
  readonly library: string;
  readonly version: string | null;
  readonly build: string | null;
  /** What a rollback leads to. */
  readonly previous: string | null;
  readonly owner: string;
  readonly mode: string;
  readonly steps: readonly string[];
  /** What is to be known or done, for people. */
  readonly remarks: readonly string[];
  readonly processes: readonly ProcessOf[];
  readonly agents: readonly ProcessOf[];
}

/** What `provider/install/command.ts` exports. */
export interface Installer {
  /** Throws an error of the name InstallError, whose `class` is that of an exit code and whose `hint` says what to do. */
  readonly run: (action: InstallAction, options: ProviderOptions) => InstallReport;
  readonly check: (options: ProviderOptions) => Promise<readonly CheckedPart[]>;
}
