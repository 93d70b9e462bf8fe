// What comes with a TDE request in addition to what contract/tde.ts declares of its head: its
// address, the size of the head, and who calls.

import { z } from 'zod';
import { mostHeadLevels, parseShallow } from '../../base/json-members.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Heads, type InstanceHeader, sealedKeyInfo, type TdeRoute, tdeRoutes } from '../../contract/tde.ts';
import type { KeyDestination, SealTo } from '../../operations/index.ts';

// The addresses of the TDE API (contract/tde.ts), matched byte for byte: no normalising, no
// percent-encoding, no query. What does not match here does not exist.

export interface TdePath {
  readonly accessGuid: string;
  readonly appId: string;
  readonly route: TdeRoute;
  /** The handle as it is in the path; undefined for routes without one. */
  readonly handle: string | undefined;
}

const base = '/tde/v1/';

const ofObject = '/objects/:handle';
const routesBy = (keep: (path: string) => boolean, name: (path: string) => string) =>
  new Map(
    (Object.keys(tdeRoutes) as TdeRoute[])
      .filter((route) => keep(tdeRoutes[route].path))
      .map((route) => [name(tdeRoutes[route].path), route]),
  );
/**
 * Routes by their path below the base (`direct`), and by what follows an object's handle (`below`).
 */
const direct = routesBy(
  (path) => !path.startsWith(ofObject),
  (path) => path,
);
const below = routesBy(
  (path) => path.startsWith(ofObject),
  (path) => path.slice(ofObject.length),
);

/** True for what the TDE front answers, well-formed or not. */
export const isTdePath = (target: string | undefined): boolean => target?.startsWith(base) === true;

/** Null when there is no such path. */
export const parseTdePath = (target: string): TdePath | null => {
  const [, accessGuid = '', appId = '', rest = ''] = /^\/tde\/v1\/([^/?#]+)\/([^/?#]+)(\/[^?#]+)$/.exec(target) ?? [];
  const route = direct.get(rest);
  if (route !== undefined) return { accessGuid, appId, route, handle: undefined };
  const [, handle, action = ''] = /^\/objects\/([^/]+)(\/.+)$/.exec(rest) ?? [];
  const ofOne = handle === undefined ? undefined : below.get(action);
  return ofOne === undefined ? null : { accessGuid, appId, route: ofOne, handle };
};

/** Without U+0000, which PostgreSQL has not in a text. */
const name = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^[^\0]*$/);
const instanceHeader = z.object({
  host: name(1024),
  pid: z.int().min(0),
  process: name(1024),
  library: name(256),
  agent: name(256),
  osUser: name(256),
}) satisfies z.ZodType<InstanceHeader>;

/** The longest head has the attributes of two objects, with 64 KiB each. */
const longestHead = 512 * 1024;
/**
 * Commas and brackets of a head: the longest one has some dozens, and none are in its texts, which
 * are Base64 and names.
 */
const mostInHead = 512;
const [comma, bracket, brace] = [0x2c, 0x5b, 0x7b];

/** Throws 'validation' for a head that takes long to read. What is in it is checked afterwards. */
export const checkHeadSize = (json: Buffer): void => {
  const tooLong = (): ServiceError => new ServiceError('validation', 'the head is too long');
  if (json.length <= mostInHead) return;
  if (json.length > longestHead) throw tooLong();
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if ((byte === comma || byte === bracket || byte === brace) && ++count > mostInHead) throw tooLong();
  }
};

/** Names the first member that does not fit, never its value. */
const complaint = (error: z.ZodError): string => {
  const [first] = error.issues;
  if (first === undefined) return 'the head does not fit';
  const path = first.path.length === 0 ? 'the head' : first.path.join('.');
  return `${path}: ${first.code.replaceAll('_', ' ')}`;
};

/** X-Dke-Instance: base64url JSON. */
const parseInstance = (header: string | undefined): InstanceHeader => {
  if (header === undefined || header.length > 4096)
    throw new ServiceError('validation', 'the header X-Dke-Instance is missing or too long');
  let value: unknown;
  try {
    value = parseShallow(Buffer.from(header, 'base64url'), mostHeadLevels);
  } catch (error) {
    throw new ServiceError('validation', 'the header X-Dke-Instance is not base64url JSON', { cause: error });
  }
  const result = instanceHeader.safeParse(value);
  if (!result.success) throw new ServiceError('validation', `X-Dke-Instance: ${complaint(result.error)}`);
  return result.data;
};

/**
 * Texts of the header that are remembered with what they say: an agent sends the same one for every
 * call of a process.
 */
const mostInstances = 1024;

/** Parses X-Dke-Instance; throws 'validation'. */
export const createInstances = (): { parse(header: string | string[] | undefined): InstanceHeader } => {
  const known = new Map<string, InstanceHeader>();
  return {
    parse: (header) => {
      const text = typeof header === 'string' ? header : undefined;
      const before = text === undefined ? undefined : known.get(text);
      if (before !== undefined) return before;
      const parsed = Object.freeze(parseInstance(text));
      if (known.size >= mostInstances) known.clear();
      if (text !== undefined) known.set(text, parsed);
      return parsed;
    },
  };
};

/** `recipient`: the agent's, Base64. */
export const toSealTo = (to: string): SealTo => ({
  recipient: Buffer.from(to, 'base64'),
  info: Buffer.from(sealedKeyInfo),
});

export const toDestination = (into: Heads['unwrap']['into']): KeyDestination =>
  into.on === 'token' ? into : { ...into, ...toSealTo(into.recipient) };
