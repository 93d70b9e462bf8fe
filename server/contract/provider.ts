// What the `dke` command and the provider's installer say to each other. The command finds the
// installer by its place in the installation and loads it when it runs; these types are all that
// both were compiled with.
import type { CheckedPart } from '../base/diagnostic-checks.ts';

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

/** A line of an agent's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** What support needs from a database host. */
export interface ProviderTrace {
  /** The settings of pkcs11.toml, without its secrets. */
  readonly settings: Readonly<Record<string, string | number | null>>;
  /** The folder of the logs. */
  readonly directory: string;
  /** Lines around the first creation of a key; null: no debug trace has one. */
  readonly firstKey: readonly LogLine[] | null;
  /** Lines of the last ten seconds of the debug trace; null: there is none. */
  readonly heartbeat: readonly LogLine[] | null;
  /** The last lines that are not of a debug trace. */
  readonly log: readonly LogLine[];
  /** What must be in none of the rest. The caller wipes the bytes. */
  readonly secrets: readonly { readonly of: string; readonly bytes: Buffer }[];
}

/** What `provider/install/command.ts` exports. */
export interface Installer {
  /**
   * Throws an error of the name InstallError, whose `class` is that of an exit code and whose
   * `hint` says what to do.
   */
  readonly run: (action: InstallAction, options: ProviderOptions) => InstallReport;
  readonly check: (options: ProviderOptions) => Promise<readonly CheckedPart[]>;
  /** `directory`: of the logs, if pkcs11.toml does not name it. */
  readonly trace: (configPath: string, directory: string | undefined) => Promise<ProviderTrace>;
}
