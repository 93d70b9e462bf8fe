// All ports in one record; an operation takes only those it uses: `Pick<Ports, 'store' | 'clock'>`.

import type { Exclusion } from '../base/exclusion.ts';
import type { Clock } from '../base/time.ts';
import type { CryptoCore } from './crypto-core.ts';
import type { Deadlines } from './deadlines.ts';
import type { EndpointDiagnosis } from './endpoint-diagnosis.ts';
import type { ErasureRuns } from './erasure.ts';
import type { Fleet } from './fleet.ts';
import type { IdentityProvider, Passkeys } from './identity.ts';
import type { KeyRing } from './key-ring.ts';
import type { CloudReader, KeyStoreConnection } from './key-store-connection.ts';
import type { Log } from './log.ts';
import type { Mailer } from './mailer.ts';
import type { Meter } from './meter.ts';
import type { PasswordHashes, PeoplePolicy } from './people.ts';
import type { RootProvider } from './root-provider.ts';
import type { ServiceIdentity } from './service-identity.ts';
import type { SnapshotArchive } from './snapshot-archive.ts';
import type { Store } from './store.ts';
import type { UsageLog } from './usage-log.ts';
import type { Directory } from './working-memory.ts';

export interface Ports {
  readonly store: Store;
  readonly core: CryptoCore;
  readonly archive: SnapshotArchive;
  /** Work that must not run at the same time: creating and restoring snapshots, erasure runs. */
  readonly exclusion: Exclusion;
  readonly root: RootProvider;
  readonly ring: KeyRing;
  readonly directory: Directory;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly log: Log;
  readonly erasure: ErasureRuns;
  readonly usage: UsageLog;
  readonly meter: Meter;
  readonly identity: ServiceIdentity;
  readonly passwords: PasswordHashes;
  readonly people: PeoplePolicy;
  /** Sends invitations; undefined where the configuration names no mail server for them. */
  readonly mailer: Mailer | undefined;
  readonly passkeys: Passkeys;
  /** Undefined where sign-in by OpenID is not configured. */
  readonly provider: IdentityProvider | undefined;
  readonly diagnosis: EndpointDiagnosis;
  readonly keyStoreProbe: KeyStoreConnection;
  /** Undefined where the cloud is not asked. */
  readonly cloud: CloudReader | undefined;
}
