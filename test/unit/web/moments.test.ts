// Moments in the addresses of the console: the same period wherever a link is opened.
import { expect, test } from 'vitest';
import { toEntered, toMoment } from '../../../server/clients/web/src/ui/fields/moments.ts';
import fc from '../../support/property.ts';

test('what is entered is a moment with its zone, and comes back as it was entered', () => {
  const minute = fc.date({ min: new Date('1980-01-01'), max: new Date('2090-01-01'), noInvalidDate: true });
  fc.assert(
    fc.property(minute, fc.constantFrom('local' as const, 'utc' as const), (date, zone) => {
      const moment = date.toISOString().replace(/:\d\d\.\d+Z$/, ':00Z');
      const entered = toEntered(moment, zone);
      const again = toMoment(entered ?? '', zone);
      expect(again).toMatch(zone === 'utc' ? /Z$/ : /[+-]\d\d:\d\d$/);
      // The hour that a clock repeats when summer time ends is entered once.
      if (new Date(again ?? '').getTime() !== new Date(moment).getTime())
        expect(toEntered(again ?? '', zone)).toBe(entered);
    }),
  );
});

test.each(['', 'yesterday', '2026-11-29T17:10', '2026-13-01T00:00:00Z', '2026-11-29', '1764436200'])(
  '"%s" in an address is not a moment',
  (text) => expect(toEntered(text, 'utc')).toBeUndefined(),
);

test('a zone of its own is kept apart', () => {
  expect(toEntered('2026-11-29T17:10:00+01:00', 'utc')).toBe('2026-11-29T16:10');
  expect(toMoment('2026-11-29T16:10', 'utc')).toBe('2026-11-29T16:10:00Z');
  expect(toMoment('no time', 'utc')).toBeUndefined();
});
