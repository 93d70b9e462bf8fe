// What leaves the host in a support bundle. Settings are shown by an allow-list; text loses
// everything that looks like a secret; and what is left is compared with the secrets that this host
// has in files, in the usual encodings. Secrets are bytes here, never text.

import { maskUrl, redact } from '../../base/redaction.ts';

const hidden = '***';

const sensitive = 'pass(?:word|phrase|wd)|secret|token|pin|authorization|credential|api[_-]?key|access[_-]?guid|cookie';
const pair = new RegExp(
  `([\\w-]{0,40}(?:${sensitive})[\\w-]{0,40}["']?\\s{0,4}[:=]\\s{0,4})("[^"\\n]*"|'[^'\\n]*'|[^,;\\n"'}]+)`,
  'gi',
);
const sensitiveName = new RegExp(sensitive, 'i');

const looksRandom = (run: string): boolean =>
  /^[0-9a-f]{32,}$/i.test(run) || (/[A-Z]/.test(run) && /[a-z]/.test(run) && /[0-9]/.test(run));

/** Text of a log or of an answer, without what looks like a secret. */
export const scrubText = (text: string): string =>
  redact(text)
    .replaceAll(/-----BEGIN [A-Z0-9 ]{1,40}-----[\s\S]*?(?:-----END [A-Z0-9 ]{1,40}-----|$)/g, `(PEM ${hidden})`)
    .replaceAll(/\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>\\]+/gi, maskUrl)
    .replaceAll(pair, `$1${hidden}`)
    .replaceAll(/[A-Za-z0-9+/=_-]{20,}/g, (run) => (looksRandom(run) ? hidden : run));

/**
 * Scrubs every text in a JSON value as `scrubText` does; members whose names say that they are
 * secrets are hidden whatever they are.
 */
export const scrubValue = (value: unknown, name = ''): unknown => {
  if (typeof value === 'string') return sensitiveName.test(name) ? hidden : scrubText(value);
  if (Array.isArray(value)) return value.map((each) => scrubValue(each, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, scrubValue(each, member)]));
};

/** Fields of dke.toml whose text is not a secret. */
const shownFields = new Set([
  ...[
    'address',
    'ca',
    'certificate',
    'cloud_networks',
    'destination',
    'directory',
    'error',
    'file',
    'host',
    'key',
    'min_severity',
    'level',
  ],
  ...['missing_snapshots', 'module', 'name', 'path', 'public_names', 'schedule', 'second_factor', 'severity', 'tls'],
  ...['trusted_authorities', 'trusted_proxies', 'type'],
]);

const maskSetting = (value: unknown, name: string): unknown => {
  if (typeof value === 'string') {
    if (/^[a-z]+:\/\//i.test(value)) return maskUrl(value);
    return shownFields.has(name) || name.endsWith('_file') ? scrubText(value) : '(set)';
  }
  if (Array.isArray(value)) return value.map((each) => maskSetting(each, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, maskSetting(each, member)]));
};

export const maskSettings = (
  settings: readonly { readonly name: string; readonly value: string | null; readonly origin: string }[],
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    settings
      .filter(({ origin }) => origin === 'file')
      .map(({ name, value }) => [
        name,
        value === null ? null : maskSetting(JSON.parse(value), name.slice(name.indexOf('.') + 1)),
      ]),
  );

const base64Digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const base64Values = (() => {
  const values = new Int8Array(256).fill(-1);
  for (let i = 0; i < 64; i += 1) values[base64Digits.charCodeAt(i)] = i;
  values['-'.charCodeAt(0)] = 62;
  values['_'.charCodeAt(0)] = 63;
  return values;
})();
const hexValues = (() => {
  const values = new Int8Array(256).fill(-1);
  for (let i = 0; i < 16; i += 1) {
    values[i.toString(16).charCodeAt(0)] = i;
    values[i.toString(16).toUpperCase().charCodeAt(0)] = i;
  }
  return values;
})();

/**
 * Decodes runs of digits, from the `skip`-th digit of each on; what is not a digit becomes a zero
 * byte. `ignored`: bytes within a run.
 */
const decodeRuns = (
  bytes: Uint8Array,
  values: Int8Array,
  bits: number,
  skip: number,
  ignored: readonly number[],
): Buffer => {
  const out = Buffer.alloc(bytes.length + 1);
  let [length, held, count, skipped] = [0, 0, 0, 0];
  for (const byte of bytes) {
    const value = values[byte] ?? -1;
    if (value < 0) {
      if (ignored.includes(byte)) continue;
      if (length > 0 && out[length - 1] !== 0) out[length++] = 0;
      [held, count, skipped] = [0, 0, 0];
      continue;
    }
    if (skipped < skip) {
      skipped += 1;
      continue;
    }
    held = ((held << bits) | value) & 0xffff;
    count += bits;
    if (count < 8) continue;
    count -= 8;
    out[length++] = (held >> count) & 0xff;
  }
  return out.subarray(0, length);
};

const lineEnds = [0x0a, 0x0d];

const percentDecoded = (bytes: Uint8Array): Buffer => {
  const out = Buffer.alloc(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const [high, low] = [hexValues[bytes[at + 1] ?? 0] ?? -1, hexValues[bytes[at + 2] ?? 0] ?? -1];
    if (bytes[at] === 0x25 && high >= 0 && low >= 0) {
      out[length++] = high * 16 + low;
      at += 2;
    } else out[length++] = bytes[at] ?? 0;
  }
  return out.subarray(0, length);
};

/** Everything that the bytes may be read as. */
const readingsOf = (bytes: Buffer): readonly Buffer[] => [
  bytes,
  percentDecoded(bytes),
  ...[0, 1].map((skip) => decodeRuns(bytes, hexValues, 4, skip, [])),
  ...[0, 1, 2, 3].map((skip) => decodeRuns(bytes, base64Values, 6, skip, lineEnds)),
];

const window = 24;
/** Shorter ones would be found by chance. */
const shortest = 8;

/** Pieces of a secret by which it is known; of a PEM file also what its Base64 says. */
const needlesOf = (secret: Buffer): readonly Buffer[] => {
  let end = secret.length;
  while (end > 0 && lineEnds.includes(secret[end - 1] ?? 0)) end -= 1;
  const trimmed = secret.subarray(0, end);
  if (trimmed.length < shortest) return [];
  const isPem = trimmed.subarray(0, 10).equals(Buffer.from('-----BEGIN'));
  const body = isPem ? decodeRuns(trimmed.subarray(trimmed.indexOf(0x0a) + 1), base64Values, 6, 0, lineEnds) : trimmed;
  if (body.length <= 2 * window) return [body];
  const pieces: Buffer[] = [];
  for (let at = 0; at + window <= body.length; at += window) {
    const piece = body.subarray(at, at + window);
    // A piece with few different bytes is not searched for: it is filler of a mostly empty file,
    // perhaps with the name of its format.
    if (new Set(piece).size > shortest) pieces.push(piece);
  }
  return pieces;
};

/**
 * Whether a text has one of these secrets in it, in any of the usual encodings. The caller wipes
 * the secrets.
 */
export const findSecret = <T>(
  text: string,
  secrets: readonly { readonly of: T; readonly bytes: Buffer }[],
): T | undefined => {
  const readings = readingsOf(Buffer.from(text, 'utf8'));
  return secrets.find(({ bytes }) =>
    needlesOf(bytes).some((needle) => readings.some((reading) => reading.includes(needle))),
  )?.of;
};
