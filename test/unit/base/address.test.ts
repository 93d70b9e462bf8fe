// One text for one address: what limits, rules and logs compare.
import { isIPv6 } from 'node:net';
import { expect, test } from 'vitest';
import { canonicalAddress } from '../../../server/base/address.ts';
import { createNetworks } from '../../../server/base/networks.ts';
import { isLocal, originsOf } from '../../../server/base/origins.ts';
import fc from '../../support/property.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:0201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:c000:201', '192.0.2.1'],
  ['2001:0DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['2001:db8:0:0:0:0:0:0', '2001:db8::'],
  ['fe80::1%eth0', 'fe80::1'],
  ['10:0:0:1::', '10:0:0:1::'],
  ['100:0:0:0:200:0:0:1', '100::200:0:0:1'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::255.255.0.0', '::ffff:0'],
  ['not an address', 'not an address'],
])('%s is %s', (given, canonical) => {
  expect(canonicalAddress(given)).toBe(canonical);
});

test('every address keeps its meaning, and has one text', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 0, 1, 0xff, 0xffff), { minLength: 8, maxLength: 8 }), (groups) => {
      const given = groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
      const canonical = canonicalAddress(given);
      // A URL writes an address in groups; Node's own text ends some of them as IPv4.
      if (isIPv6(canonical)) expect(canonical).toBe(new URL(`http://[${given}]`).hostname.slice(1, -1));
      expect(canonicalAddress(canonical)).toBe(canonical);
    }),
  );
});

test('a client of IPv4 has a bucket of its own, whichever way its address came', () => {
  const [[, one]] = originsOf('0:0:0:0:0:ffff:c000:201');
  const [[, other]] = originsOf('0:0:0:0:0:ffff:c000:202');
  expect([one, other]).toEqual(['192.0.2.1', '192.0.2.2']);
  expect(originsOf('::ffff:192.0.2.1')).toEqual(originsOf('192.0.2.1'));
  expect(createNetworks(['192.0.2.0/24']).has('0:0:0:0:0:ffff:c000:201')).toBe(true);
  expect(['::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '192.0.2.1'].map(isLocal)).toEqual([
    ...[true, true, true, true, false],
  ]);
});
