// The part of the addon that the XKS front uses on its hot path. Types only; app/ passes the addon
// in.

import type { Core } from '../../addon/core.ts';

export type { KeyRef, XksParsed, XksRequestMetadata } from '../../addon/core.ts';

export type XksCrypto = Pick<
  Core,
  | 'generateGeneric'
  | 'release'
  | 'sigv4SigningKey'
  | 'sigv4Verify'
  | 'wipe'
  | 'xksDecrypt'
  | 'xksEncrypt'
  | 'xksParse'
  | 'xksRelease'
>;
