// The way to the service with what the service has said a moment ago (service-answer-cache.ts). A
// request whose answer still counts is not sent. One whose answer is held and no longer counts has
// everything proven that is held, in one request for all processes of a configuration; and the
// first read of a value brings those of the other data objects that were just found.
import { core } from '../../../addon/core.ts';
import { packHandles, packHeld, unpackHeldAnswers, unpackValues } from '../../../server/contract/tde.ts';
import type { ServiceAnswerCache } from './service-answer-cache.ts';
import {
  type Caller,
  type RouteName,
  type ServiceAnswer,
  ServiceCallError,
  type ServiceRequest,
} from './service-door.ts';

type Ask = <R extends RouteName>(request: ServiceRequest<R>, caller: Caller) => Promise<ServiceAnswer<R>>;

/** A service of an earlier version is asked again after so long: it may have been upgraded. */
const unknownMs = 600_000;
const unknownRoute: ReadonlySet<string> = new Set(['not-found', 'unsupported']);

export const rememberingDoor = (cache: ServiceAnswerCache, ask: Ask): Ask => {
  let refreshing: Promise<void> | null = null;
  let unknownUntil = 0;

  /**
   * Asks for many objects at once. What fails because the service is away, or refuses the caller,
   * fails each of them.
   */
  const askForMany = async (work: () => Promise<void>): Promise<void> => {
    if (cache.now() < unknownUntil) return;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ServiceCallError)) throw error;
      cache.failed();
      if (!unknownRoute.has(error.code)) throw error;
      unknownUntil = cache.now() + unknownMs;
    }
  };

  const refresh = (request: ServiceRequest, caller: Caller): Promise<void> | null => {
    if (!cache.isHeld(request)) return null;
    // Another process has everything proven at this moment; what that leaves out is asked for
    // alone.
    if (refreshing !== null) return refreshing;
    const held = cache.toRefresh(request);
    if (held.length === 0) return null;
    refreshing = askForMany(async () => {
      const sentAt = cache.now();
      const asked = { route: 'refresh', handle: null, head: {}, raw: packHeld(held) } as const;
      const { raw, epoch } = await ask(asked, caller);
      cache.refreshed(held, sentAt, epoch, unpackHeldAnswers(raw, held.length));
    }).finally(() => {
      refreshing = null;
    });
    return refreshing;
  };

  const readValues = (request: ServiceRequest, caller: Caller): Promise<void> | null => {
    const handles = cache.valuesToRead(request);
    if (handles.length === 0) return null;
    return askForMany(async () => {
      const { raw } = await ask({ route: 'readValues', handle: null, head: {}, raw: packHandles(handles) }, caller);
      cache.valuesRead(unpackValues(raw));
      if (raw.length > 0) core.wipe(raw);
    });
  };

  return async <R extends RouteName>(request: ServiceRequest<R>, caller: Caller): Promise<ServiceAnswer<R>> => {
    const askedAt = cache.now();
    const recall = (): ServiceAnswer<R> | null => {
      const said = cache.recall(request, askedAt);
      return said === null ? null : { answer: said.answer as ServiceAnswer<R>['answer'], raw: said.raw, epoch: 0 };
    };
    const said = recall();
    if (said !== null) return said;
    const proving = refresh(request, caller) ?? readValues(request, caller);
    if (proving !== null) {
      await proving;
      const proven = recall();
      if (proven !== null) return proven;
    }
    const sentAt = cache.now();
    try {
      const answer = await ask(request, caller);
      cache.answered(request, sentAt, answer.epoch, answer.answer);
      return answer;
    } catch (error) {
      if (error instanceof ServiceCallError) cache.failed(aboutOne.has(error.code) ? request.handle : null);
      throw error;
    }
  };
};

/** Refusals that say something of the object that was named, and nothing of others. */
const aboutOne: ReadonlySet<string> = new Set([
  'key-disabled',
  'key-destroyed',
  'key-not-found',
  'key-usage',
  'key-tampered',
  'forbidden',
  'validation',
  'invalid-ciphertext',
  'data-length',
]);
