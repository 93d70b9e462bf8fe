// What a service is given, and what it gives to the process that runs it.

import type { Argon2Parameters } from '../adapters/crypto/password-hashes.ts';
import type { AskPassphrase } from '../adapters/roots/unlock-ways.ts';
import type { LimitRefusals } from '../base/limit-refusals.ts';
import type { StartError } from '../base/start-error.ts';
import type { ApiFrontOptions } from '../fronts/api/api-front.ts';
import type { TlsMaterial } from '../fronts/listener/listener.ts';
import type { RawFront } from '../fronts/shared/dispatch.ts';
import type { TdeFront } from '../fronts/tde/tde-front.ts';
import type { XksFront } from '../fronts/xks/xks-front.ts';
import type { Operations } from '../operations/index.ts';
import type { TenantRetention } from '../operations/tenants/purge-tenant.ts';
import type { Log, LogState } from '../ports/log.ts';
import type { Config } from './config/config.ts';
import type { StopGrace } from './jobs.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly log: Log;
  /** Whether its lines reach their destination. */
  readonly logState: () => LogState;
  /** Where a line for each request goes; absent: requests are not logged. */
  readonly accessLog?: { write(line: string): void; state(): LogState } | undefined;
  /** Counts what limits refuse; its own when absent. */
  readonly refusals?: LimitRefusals;
  /**
   * An operator decided to use a database that does not match the checkpoint next to the root key.
   */
  readonly acceptDatabase: boolean;
  /** The address that databases and people are given; known only once the listener has its port. */
  readonly publicUrl: () => string;
  /** Where this node's own listener is. */
  readonly listening: () => { readonly host: string; readonly port: number };
  /** Asks a person for a root provider's passphrase. Absent: no person can be asked. */
  readonly ask?: AskPassphrase | undefined;
  /**
   * The root key is not open: the listener answers with this until it is. Absent: the service does
   * not wait for its root key.
   */
  readonly onSealed?: (sealed: Pick<Service, 'handle' | 'readTls' | 'certificatePath'>) => Promise<void>;
  /** Stops waiting for a root key. */
  readonly signal?: AbortSignal | undefined;
  /**
   * At the first start: gives the value of the first administrator token to the person who has
   * started it, before anything else can fail.
   */
  readonly showFirstToken?: ((token: string) => void) | undefined;
  /** Which host this is; as it tells itself when absent. */
  readonly hostFacts?: (() => string) | undefined;
  /**
   * How long a part may take for what is under way when the service stops; a second when absent.
   */
  readonly stopGrace?: StopGrace | undefined;
  /** One line for people who have the service's host. */
  readonly say?: ((line: string) => void) | undefined;
  /** The store failed under the service: what was confirmed is safe, nothing more can be. */
  readonly onFatal: (error: StartError) => void;
  /** Parameters of Argon2id for passwords; the usual ones when absent. */
  readonly passwordParameters?: Argon2Parameters;
  /**
   * How the console's front learns of the peer and of the end of an answer: the listener's
   * business.
   */
  readonly connection: Pick<ApiFrontOptions, 'peerOf' | 'afterSent' | 'proven'>;
}

export interface Service {
  readonly operations: Operations;
  /** Checks now everything that notifications tell of. */
  checkNotifications(): Promise<void>;
  /** Answers one request of any front. */
  readonly handle: RawFront['handle'];
  readonly xks: XksFront;
  readonly tde: TdeFront;
  /** PEM file of the first certificate. */
  readonly certificatePath: string;
  /** The value of the first administrator token, when this was the first start. */
  readonly adminToken: string | undefined;
  readonly requestId: () => string;
  /** Reads certificates and keys from their files, and the authorities of client certificates. */
  readTls(): TlsMaterial;
  /**
   * Reads what `readTls` reads, to replace the certificates that are served. Throws StartError
   * 'config' when the new certificates are worse than the present ones.
   */
  renewTls(): Promise<TlsMaterial>;
  /** The certificates of `present`, with the current authorities of client certificates. */
  withAuthorities(present: TlsMaterial): TlsMaterial;
  /** The listener serves these from now on. */
  tlsTaken(material: TlsMaterial): void;
  /** Purges deleted tenants when their retention ends. */
  readonly tenantRetention: Pick<TenantRetention, 'run'>;
  /** Tells when endpoints want client certificates of other authorities than before. */
  onClientAuthorities(tell: () => void): void;
  /** Health is bad from now on, so that load balancers send requests to other nodes. */
  announceStop(): void;
  /**
   * Writes what is queued, then closes everything. Throws `StartError` when not everything could be
   * stored; everything is closed in any case.
   */
  stop(): Promise<void>;
}
