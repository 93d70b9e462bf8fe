// Moments as a person enters them, and as the address of a page has them: RFC 3339 with its zone,
// so that a link means the same period everywhere.

export type Zone = 'local' | 'utc';

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;
const two = (number: number): string => String(number).padStart(2, '0');

/** What an input of date and time has, `2026-11-29T17:10`, as a moment in this zone. */
export const toMoment = (entered: string, zone: Zone): string | undefined => {
  const moment = new Date(zone === 'utc' ? `${entered}Z` : entered);
  if (Number.isNaN(moment.getTime())) return undefined;
  const withSeconds = /T\d\d:\d\d$/.test(entered) ? `${entered}:00` : entered;
  if (zone === 'utc') return `${withSeconds}Z`;
  const ahead = -moment.getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60];
  return `${withSeconds}${ahead < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`;
};

/** The reverse; undefined for a text that is not a moment with a zone. */
export const toEntered = (moment: string, zone: Zone): string | undefined => {
  const date = new Date(moment);
  if (!rfc3339.test(moment) || Number.isNaN(date.getTime())) return undefined;
  const shown = zone === 'utc' ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shown.toISOString().slice(0, 16);
};
