// Cryptography that an application may use only while its compatibility switch is on. The caller's
// application is read with each request, so a change counts from the next request on.

import { command } from '../../base/command-line.ts';
import { type CompatibilitySwitch, isShortRsa } from '../../base/compatibility-switches.ts';
import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';
import type { KeyDescription } from '../../ports/crypto-core.ts';
import type { TdeCaller } from './tde-operations.ts';

/** Throws unless one of the switches is on. */
export const requireSwitch = (
  { application }: TdeCaller,
  switches: readonly CompatibilitySwitch[],
  code: ServiceErrorCode = 'forbidden',
): void => {
  if (switches.some((name) => application.compatibility.includes(name))) return;
  throw new ServiceError(code, `the application's compatibility switch ${switches.join(' or ')} is off`, {
    hint: command`dke tde app compatibility --permit=${switches[0] ?? 'SWITCH'} ${application.name}`,
    reason: 'compatibility',
  });
};

/**
 * Throws when the key is a short RSA key that the application may not have. A public one may also
 * be for verification only.
 */
export const requireRsaSize = (
  caller: TdeCaller,
  { kind, bits }: Pick<KeyDescription, 'kind' | 'bits'>,
  code: ServiceErrorCode,
): void => {
  if (kind === 'rsa-private' && isShortRsa(bits)) requireSwitch(caller, ['short-rsa-keys'], code);
  if (kind === 'rsa-public' && isShortRsa(bits))
    requireSwitch(caller, ['short-rsa-verification', 'short-rsa-keys'], code);
};
