// The small things that everything hangs on: identifiers, canonical JSON, redaction, bearer
// credentials.

import { describe, expect, test } from 'vitest';
import { canonicalJson, parseBase64 } from '../../../server/base/bytes.ts';
import { idBytes, isId, newId } from '../../../server/base/ids.ts';
import { redact } from '../../../server/base/redaction.ts';
import { looksLikeBearer, makeBearer } from '../../../server/operations/access/bearer.ts';
import { checkName } from '../../../server/operations/shared/names.ts';
import fc from '../../support/property.ts';

describe('identifiers', () => {
  test('are UUID version 7 and strictly increase, also in one millisecond and when the clock steps back', () => {
    const times = [1_000_000, ...Array.from({ length: 10_000 }, () => 1_700_000_000_000), 1_600_000_000_000];
    const ids = times.map((time) => newId(time));
    expect(ids.every((id) => isId(id) && id[14] === '7' && '89ab'.includes(id[19] ?? ''))).toBe(true);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('have 16 bytes; another text has none', () => {
    expect(idBytes('00000000-0000-0000-0000-0000000000ff').toString('hex')).toBe('000000000000000000000000000000ff');
    expect(() => idBytes('00000000-0000-0000-0000-0000000000FF')).toThrow(RangeError);
  });
});

describe('canonical JSON', () => {
  test('is one text for one value, whatever the order of its members', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))),
        (value) => {
          const turned = Object.fromEntries(Object.entries(value).reverse());
          expect(canonicalJson(turned)).toBe(canonicalJson(value));
          expect(JSON.parse(canonicalJson(value))).toEqual(value);
        },
      ),
    );
  });

  test('refuses what has more than one text', () => {
    for (const value of [0.5, Number.NaN, 2 ** 60, 1n, undefined])
      expect(() => canonicalJson(value)).toThrow(RangeError);
  });
});

test('Base64 is canonical or refused', () => {
  expect(parseBase64('QUI=')?.toString()).toBe('AB');
  for (const text of ['QUI', 'QUJ=', 'QU I=', 'QUI=\n', '-_8=', 'Q'] as const) expect(parseBase64(text)).toBeNull();
});

describe('bearer credentials', () => {
  const core = {
    random: (out: Uint8Array) => {
      crypto.getRandomValues(out);
    },
    wipe: (buffer: Uint8Array) => {
      buffer.fill(0);
    },
  };

  test('carry their kind, are never twice the same, and are taken for nothing else', () => {
    const guid = makeBearer(core, 'access-guid');
    expect(guid).toMatch(/^dkeg_[A-Za-z0-9_-]{43}$/);
    expect(makeBearer(core, 'access-guid')).not.toBe(guid);
    expect(looksLikeBearer('access-guid', guid)).toBe(true);
    expect(looksLikeBearer('api-token', guid)).toBe(false);
    expect(looksLikeBearer('access-guid', `${guid}x`)).toBe(false);
  });

  test('are removed from every text that a log could contain', () => {
    const guid = makeBearer(core, 'access-guid');
    const token = makeBearer(core, 'api-token');
    const texts = [
      `POST https://h/tde/v1/${guid}/app/info`,
      `authorization: Bearer ${token}`,
      `{"authorization":"bearer 5d3c0a1e-1111"}`,
      `/tde/v1/old-style-guid/app`,
      `${guid}${token}`,
    ];
    for (const text of texts) {
      const clean = redact(text);
      for (const secret of [guid, token, '5d3c0a1e-1111', 'old-style-guid']) expect(clean).not.toContain(secret);
    }
  });
});

test('a name is printable and trimmed', () => {
  expect(checkName('Finance (EU) – 1')).toBe('Finance (EU) – 1');
  for (const name of ['', ' a', 'a ', 'a\nb', 'a\u0000', 'x'.repeat(129)]) expect(() => checkName(name)).toThrow();
});
