// What the parts of a service tell each other. Each part declares its own events; here is who
// follows them:
//
// | event           | told by                        | followed by                                             |
// |-----------------|--------------------------------|---------------------------------------------------------|
// | lateCommit      | the database (storage.ts)      | the directory (ports.ts)                                |
// | keyDestroyed    | the fleet                      | the erasure run (ports.ts)                              |
// | dutyTaken       | the fleet                      | the erasure run (ports.ts)                              |
// | rootRotated     | the rotation of the root key   | a fleet of one (operations/nodes/lone-fleet.ts), the    |
// |                 |                                | notifications (service.ts)                              |
// | nodeRemoved     | the fleet                      | this process, which stops (nodes.ts)                    |
// | nodeLost        | the fleet                      | this process, which stops (nodes.ts)                    |
// | nodeCopied      | the fleet                      | this process, which stops (nodes.ts)                    |
// | changesLost     | the fleet                      | the quarantine (serving.ts)                             |
// | databaseChanged | the sealer of the audit log    | the quarantine (serving.ts)                             |

import type { Events } from '../../base/events.ts';
import type { SealEvents } from '../../operations/audit/seal-audit-log.ts';
import type { FleetEvents, RootEvents } from '../../operations/nodes/running-fleet.ts';
import type { StorageEvents } from './storage.ts';

export type ServiceEvents = Events<StorageEvents & FleetEvents & RootEvents & SealEvents>;
