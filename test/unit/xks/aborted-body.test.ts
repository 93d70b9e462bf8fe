// A body of the XKS proxy that never ends: what came of it is wiped.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { admitCaller } from '../../../server/fronts/shared/admission.ts';
import { readBody } from '../../../server/fronts/xks/xks-request.ts';

test.each([1, 3])('a caller that leaves after %i pieces leaves no plaintext behind', async (count) => {
  const incoming = Object.assign(new PassThrough(), { headers: {}, httpVersionMajor: 2, socket: { bytesRead: 0 } });
  const told: unknown[] = [];
  readBody(incoming as unknown as IncomingMessage, admitCaller({ id: 'caller' }), (body) => told.push(body));
  const pieces = Array.from({ length: count }, () => Buffer.from('{"plaintext":"c2VjcmV0'));
  for (const piece of pieces) {
    const came = once(incoming, 'data');
    incoming.write(piece);
    await came;
  }
  const closed = once(incoming, 'close');
  incoming.destroy();
  await closed;
  expect(told).toEqual([expect.any(Error)]);
  expect(pieces.every((piece) => piece.every((byte) => byte === 0))).toBe(true);
});
