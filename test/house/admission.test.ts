// Limits come before a body is read or parsed, on every front. What reads a body takes an
// `Admission`, which three functions make after they have counted the request
// (server/fronts/shared/admission.ts). So a front cannot forget it, as long as no other code reads
// a body or makes a proof.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const fronts = files(['server/fronts', 'server/fronts/listener'], '.ts').map((path) => ({
  path,
  text: withoutComments(read(path)),
}));
const withText = (pattern: RegExp): string[] => fronts.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

test('only two files read bodies of requests, and both take the proof that the request was counted', () => {
  const readers = ['server/fronts/shared/read-body.ts', 'server/fronts/xks/xks-request.ts'];
  expect(
    withText(/\bincoming\b[^;\n]*\.(?:on|once)\('(?:data|readable)'|\bincoming\.(?:iterator|read|pipe)\(/),
  ).toEqual(readers);
  expect(withText(/\breq(?:\.raw)?\.(?:json|text|arrayBuffer|formData|parseBody|blob|body|bytes)\b/)).toEqual([]);
  for (const path of readers) {
    const { text = '' } = fronts.find((each) => each.path === path) ?? {};
    const exported = text.match(/export const (?:readBody|piecesOf) = \([^)]*\)/gs) ?? [];
    expect([path, exported.length > 0, exported.filter((head) => !head.includes('_admission: Admission'))]).toEqual([
      path,
      true,
      [],
    ]);
  }
});

test('only one file makes the proof', () => {
  expect(withText(/\bas (?:unknown as )?Admission\b|<Admission>/)).toEqual(['server/fronts/shared/admission.ts']);
});

test('only what has limited the depth parses JSON of callers', () => {
  const own = {
    'server/fronts/api/handlers/session-handlers.ts': 'what the service has made',
    'server/fronts/api/validate.ts': 'after isNestedDeeper',
    'server/fronts/api/write-openapi.ts': 'package.json, in the build',
  };
  expect(withText(/\bJSON\.parse\(/)).toEqual(Object.keys(own));
  const { text = '' } = fronts.find(({ path }) => path === 'server/fronts/api/validate.ts') ?? {};
  expect(text.indexOf('isNestedDeeper(')).toBeGreaterThan(0);
  expect(text.indexOf('isNestedDeeper(')).toBeLessThan(text.indexOf('JSON.parse('));
});
