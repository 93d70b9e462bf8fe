// What can be done with the nodes of a service.

import type { Actor } from '../../domain/actor.ts';
import type { FleetNode } from '../../domain/node.ts';

export interface NodeOperations {
  list(actor: Actor): Promise<readonly FleetNode[]>;
  get(actor: Actor, id: string): Promise<FleetNode>;
  drain(actor: Actor, id: string): Promise<FleetNode>;
  resume(actor: Actor, id: string): Promise<FleetNode>;
  remove(actor: Actor, id: string): Promise<FleetNode>;
}
