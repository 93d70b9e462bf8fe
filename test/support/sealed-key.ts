// Keys as an agent sends them to the service: sealed to the recipient of the application's tenant.
import { core, type KeyRef } from '../../addon/core.ts';
import { boundTo, keyForServiceInfo, packSealed, type ServiceInfo, type TdeRoutes } from '../../server/contract/tde.ts';
import type { TdeCaller, TdeOperations } from '../../server/operations/index.ts';
import type { Recipient, SealedKey } from '../../server/ports/key-ring.ts';

/** A private key is its PKCS#8. */
const importValue = (value: Uint8Array, objectClass: string): KeyRef =>
  objectClass === 'private-key' ? core.importPrivateKey(value) : core.importSecret('generic', value);

const seal = (
  recipient: Recipient,
  value: Uint8Array,
  objectClass: string,
  info: Uint8Array,
  bound: Uint8Array,
): Buffer => {
  const key = importValue(value, objectClass);
  try {
    return core.hpkeSealKey(recipient.publicKey, info, bound, key);
  } finally {
    core.release(key);
  }
};

/** For an operation. */
export const sealedKey = async (
  tde: TdeOperations,
  caller: TdeCaller,
  value: Uint8Array,
  objectClass: 'secret-key' | 'private-key' = 'secret-key',
): Promise<SealedKey> => {
  const { recipient } = await tde.info(caller);
  const [info, bound] = [Buffer.from(keyForServiceInfo), Buffer.from('a test')];
  return { recipient, info, bound, sealed: seal(recipient, value, objectClass, info, bound) };
};

/** For a route: the raw bytes of its envelope. */
export const sealedBytes = (
  { applicationId, recipient }: Pick<ServiceInfo, 'applicationId' | 'recipient'>,
  route: keyof TdeRoutes,
  head: object & { readonly class?: string },
  value: Uint8Array,
  { handle = 0, once = '' }: { readonly handle?: number; readonly once?: string } = {},
): Buffer<ArrayBuffer> => {
  const to = { epoch: recipient.epoch, publicKey: Buffer.from(recipient.publicKey, 'base64') };
  const bound = boundTo(applicationId, route, handle, once, Buffer.from(JSON.stringify(head)));
  return packSealed(to, seal(to, value, head.class ?? 'secret-key', Buffer.from(keyForServiceInfo), bound));
};
