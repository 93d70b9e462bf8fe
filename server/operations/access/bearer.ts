// Bearer credentials: a prefix that names the kind (so that secret scanners and people recognise
// one) and 256 random bits in base64url: `dkeg_` access_guid, `dket_` administrator token, `dkem_`
// token for metrics, `dkei_` invitation; 48 characters, safe in URLs and in TOML. They are stored
// as a hash only. The text is a JavaScript string because it ends in JSON and in HTTP headers.

import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { BearerPurpose } from '../../ports/key-ring.ts';

const prefixes = {
  'access-guid': 'dkeg_',
  'api-token': 'dket_',
  'metrics-token': 'dkem_',
  invitation: 'dkei_',
} as const satisfies Record<BearerPurpose, string>;
const body = /^[A-Za-z0-9_-]{43}$/;

export const makeBearer = (core: Pick<CryptoCore, 'random' | 'wipe'>, purpose: BearerPurpose): string => {
  const bytes = Buffer.alloc(32);
  core.random(bytes);
  const text = `${prefixes[purpose]}${bytes.toString('base64url')}`;
  core.wipe(bytes);
  return text;
};

/** Whether a text could be such a credential; what could not is refused before it is hashed. */
export const looksLikeBearer = (purpose: BearerPurpose, text: string): boolean =>
  text.startsWith(prefixes[purpose]) && body.test(text.slice(prefixes[purpose].length));
