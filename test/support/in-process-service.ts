// The service as the agent's unit tests have it: the real one, in this process and without a
// listener, behind the agent's door. One service for a test file; each door is an application with
// its own group. Tests define outages here.
import { afterAll } from 'vitest';
import type {
  Answer,
  Caller,
  RouteName,
  ServiceDoor,
  ServiceRequest,
} from '../../provider/agent/service/service-door.ts';
import { ServiceCallError } from '../../provider/agent/service/service-door.ts';
import type { CompatibilitySwitch } from '../../server/base/compatibility-switches.ts';
import type { ServiceErrorCode } from '../../server/base/service-error.ts';
import { onceRoutes } from '../../server/contract/tde.ts';
import { administrator, callTde, type OpenedService, openTestService, registerCaller } from './open-service.ts';

export interface InProcessService extends ServiceDoor {
  /** Requests so far, by route. */
  readonly asked: ReadonlyMap<RouteName, number>;
  /** What an operator does in the console with the key of this label. */
  setState(label: string, state: 'disabled' | 'destroyed'): Promise<void>;
  /** Turns on these compatibility switches of the application, and turns off all others. */
  permit(...switches: CompatibilitySwitch[]): Promise<void>;
  /** From now on every call fails so, or every one of a route; null ends it. */
  failWith(code: ServiceErrorCode | null, route?: RouteName): void;
  /** Removes the application's credential, as its rotation does. */
  revoke(): Promise<void>;
  /** Holds every answer back until the returned function is called. */
  hold(): () => void;
}

let opened: Promise<OpenedService> | undefined;

afterAll(async () => {
  await (await opened)?.remove();
});

const none = new Uint8Array(0);
let applications = 0;

export const openInProcessService = async (): Promise<InProcessService> => {
  opened ??= openTestService();
  const { service, operations } = await opened;
  applications += 1;
  const { caller, accessGuid } = await registerCaller({ operations }, `application-${applications}`);
  const asked = new Map<RouteName, number>();
  let failure: ServiceErrorCode | null = null;
  let failing: RouteName | undefined;
  let held: Promise<void> = Promise.resolve();

  return {
    asked,
    async call<R extends RouteName>({ route, handle, head, raw }: ServiceRequest<R>, { requestId }: Caller) {
      asked.set(route, (asked.get(route) ?? 0) + 1);
      await held;
      try {
        if (failure !== null && (failing ?? route) === route) throw new ServiceCallError(failure, 'refused', requestId);
        const place = handle === null ? {} : { handle };
        const { appId } = caller;
        const once = onceRoutes.has(route) ? { once: requestId } : {};
        const answer = await callTde(service, accessGuid, route, head, { appId, raw: raw ?? none, ...place, ...once });
        if (answer.status !== 200) {
          const {
            code,
            title,
            reason = null,
          } = answer.head as { code: ServiceErrorCode; title: string; reason?: string };
          throw new ServiceCallError(code, title, requestId, { reason });
        }
        return { answer: answer.head as Answer<R>, raw: answer.raw, epoch: 0 };
      } finally {
        raw?.fill(0);
      }
    },
    withdraw: () => undefined,
    close: async () => undefined,
    async setState(label, state) {
      const { items } = await operations.masterKeys.list(administrator, caller.application.id, { limit: 100 });
      const found = items.find(({ name }) => name === label);
      if (found === undefined) throw new Error(`no key is called ${label}`);
      if (state === 'disabled') await operations.keys.disable(administrator, found.id);
      else await operations.masterKeys.destroy(administrator, caller.application.id, found.id);
    },
    async permit(...switches) {
      await operations.applications.setCompatibility(administrator, caller.application.id, switches);
    },
    failWith(code, only) {
      failure = code;
      failing = only;
    },
    async revoke() {
      const { id } = caller.application;
      await operations.applications.rotateAccessGuid(administrator, id);
      await operations.applications.removeAccessGuid(administrator, id, caller.accessGuidId);
    },
    hold() {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return () => release();
    },
  };
};
