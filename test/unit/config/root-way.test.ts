// Which commands are printed for root to paste: those whose folders only root can replace. Other
// users own folders here, and that takes root.
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wayOfRoot } from '../../../server/app/host/root-way.ts';

const whyNot = process.getuid?.() === 0 ? undefined : 'folders of other users take root';
if (whyNot !== undefined) console.info(`skipped: ${whyNot}`);

describe.runIf(whyNot === undefined)('a folder on the way of root', () => {
  let place: string;
  beforeEach(() => {
    // The folder of temporary files is everyone's.
    place = mkdtempSync('/srv/dke-way-');
    chmodSync(place, 0o755);
    mkdirSync(join(place, 'own'));
    mkdirSync(join(place, 'theirs/own'), { recursive: true });
    chownSync(join(place, 'theirs'), 65_534, 65_534);
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  test("is root's, or is missing below one of root's", () => {
    expect(lstatSync('/srv').mode & 0o022).toBe(0);
    expect(wayOfRoot(join(place, 'own'))).toEqual({ exists: true });
    expect(wayOfRoot(join(place, 'new/folder'))).toEqual({ exists: false });
    // Its own owner does not rename it.
    expect(wayOfRoot(join(place, 'theirs'))).toEqual({ exists: true });
  });

  test('of another user can be replaced', () => {
    const fault = `${join(place, 'theirs')} belongs to user 65534`;
    for (const path of ['theirs/own', 'theirs/new']) expect(wayOfRoot(join(place, path)).fault).toBe(fault);
    symlinkSync(join(place, 'theirs'), join(place, 'link'));
    symlinkSync('theirs/new', join(place, 'far'));
    for (const path of ['link/own', 'far', 'own/../link/x']) expect(wayOfRoot(join(place, path)).fault).toBe(fault);
  });

  test.each([0o777, 0o775, 0o1777])('with mode %o can be replaced', (mode) => {
    chmodSync(join(place, 'own'), mode);
    expect(wayOfRoot(join(place, 'own/x')).fault).toBe(`users other than root can write ${join(place, 'own')}`);
  });

  test('that leads in a circle, or is a file, is none', () => {
    symlinkSync('circle', join(place, 'circle'));
    expect(wayOfRoot(join(place, 'circle/x')).fault).toContain('leads in a circle');
    expect(wayOfRoot('/etc/passwd/x').fault).toBe('/etc/passwd is not a folder');
  });
});
