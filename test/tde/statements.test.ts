// The statement language, the errors of its parser, and what the profiles promise about themselves.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { checkLibraryLocation, findLibrary } from './library.ts';
import { OraError } from './ora-error.ts';
import { gradeFaults, labelOf, profileNames, readProfile, readSources } from './profile.ts';
import { parseStatement } from './statements.ts';

const codeOf = (sql: string): string => {
  try {
    parseStatement(sql);
  } catch (error) {
    if (error instanceof OraError) return error.code;
    throw error;
  }
  return 'none';
};

describe('a statement', () => {
  test.each([
    [
      'ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "p in" CONTAINER = ALL',
      { container: 'all', password: { literal: 'p in' } },
    ],
    [
      'administer key management set key force keystore identified by "p" with backup using \'b\';',
      { force: true, backup: { name: 'b' } },
    ],
    [
      'ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "h" MIGRATE USING "w" WITH BACKUP USING \'b\'',
      { migrate: { literal: 'w' }, backup: { name: 'b' } },
    ],
    [
      'ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "w" REVERSE MIGRATE USING "h" WITH BACKUP',
      { reverse: { literal: 'h' }, backup: { name: null } },
    ],
    [
      'ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "user:password" MIGRATE USING "w"',
      { old: true, migrate: { literal: 'w' }, password: { literal: 'user:password' } },
    ],
    ['ALTER SYSTEM SET ENCRYPTION WALLET OPEN IDENTIFIED BY "x"', { kind: 'open-keystore', old: true }],
    [
      "ALTER SYSTEM SET TDE_CONFIGURATION='KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE=BOTH",
      { kind: 'set-parameter', value: 'KEYSTORE_CONFIGURATION=HSM|FILE' },
    ],
    [
      "ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=FILE|HSM' SCOPE = BOTH SID = '*'",
      { kind: 'set-parameter', value: 'KEYSTORE_CONFIGURATION=FILE|HSM', scope: 'BOTH' },
    ],
    ['ALTER SYSTEM SET HEARTBEAT_BATCH_SIZE = 50 SCOPE = BOTH', { kind: 'set-parameter', value: '50' }],
    ['ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY EXTERNAL STORE', { password: 'external' }],
    ['ADMINISTER KEY MANAGEMENT CREATE KEYSTORE IDENTIFIED BY "w"', { kind: 'create-keystore', place: null }],
    [
      "ADMINISTER KEY MANAGEMENT ADD SECRET 's' FOR CLIENT 'HSM_PASSWORD' TO LOCAL AUTO_LOGIN KEYSTORE '/store'",
      { kind: 'add-secret', store: { place: '/store', local: true } },
    ],
    [
      "ADMINISTER KEY MANAGEMENT SWITCHOVER TO LIBRARY '/a/b.so' FOR ALL CONTAINERS",
      { kind: 'switchover', library: '/a/b.so' },
    ],
    [
      "CREATE PLUGGABLE DATABASE twin USING 'twin.pdb' COPY FILE_NAME_CONVERT = ('a', 'b') KEYSTORE IDENTIFIED BY \"x\"",
      { using: 'twin.pdb', convert: ['a', 'b'] },
    ],
    ["INSERT INTO t VALUES ('it''s')", { text: "it's" }],
  ])('%s', (sql, wanted) => {
    expect(parseStatement(sql)).toMatchObject(wanted);
  });

  test.each([
    ['ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY EXTERNAL STORE', 'ORA-00988'],
    ['ADMINISTER KEY MANAGEMENT CREATE KEYSTORE IDENTIFIED BY EXTERNAL STORE', 'ORA-00988'],
    ['ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "h" MIGRATE USING "w" CONTAINER = ALL', 'ORA-00922'],
    ['ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "w" REVERSE MIGRATE USING "h" CONTAINER = ALL', 'ORA-00922'],
    ['ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY', 'ORA-00988'],
    ['ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY ""', 'ORA-01741'],
    ['ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "p" CONTAINER = SOME', 'ORA-00922'],
    ['ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "w" REVERSE MIGRATE USING "h"', 'ORA-02065'],
    ['SET KEY', 'ORA-00900'],
  ])('that is wrong is refused with the database’s number: %s', (sql, code) => {
    expect(codeOf(sql)).toBe(code);
  });
});

describe('a profile', () => {
  test.each(profileNames)('%s gives each assumption its grade, with source and reason', (name) => {
    const sources = new Set(Object.keys(readSources()));
    const profile = readProfile(name);
    expect(gradeFaults(profile, sources)).toEqual([]);
    // The database's own calls were never seen: a profile that infers nothing would not be honest.
    expect(JSON.stringify(profile)).toContain('"inferred"');
    // What is found is found where it is missing.
    const bare = { ...profile, iv: { value: 'zero', why: 'a reason that is long enough' } };
    expect(gradeFaults(bare, sources)).toEqual(['.iv has no grade']);
    expect(gradeFaults({ iv: { ...profile.iv, grade: 'known' } }, sources)).toEqual(['.iv has no source']);
  });

  test('gives labels as they are shown', () => {
    const digits = '9F37D091A73D4F13BF2CE921EB2CF080';
    expect(labelOf(readProfile('12c-19c'), `06${digits}`)).toBe(`ORACLE.TDE.HSM.MK.06${digits}`);
    expect(labelOf(readProfile('11g'), `07${digits}`)).toBe(`ORACLE.TSE.HSM.MK.07${digits}0203`);
  });
});

describe('the library’s place', () => {
  const base = mkdtempSync(join(tmpdir(), 'dke-extapi-'));
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  const owner = process.getuid?.() ?? 0;
  const put = (path: string): string => {
    mkdirSync(join(base, path, '..'), { recursive: true, mode: 0o755 });
    writeFileSync(join(base, path), '');
    return join(base, path);
  };
  const code = (work: () => unknown): string => {
    try {
      work();
    } catch (error) {
      return error instanceof OraError ? error.code : String(error);
    }
    return 'none';
  };

  test('is the one library under hsm/, and a second one is one too many', () => {
    expect(code(() => findLibrary(base, null, owner))).toBe('ORA-28376');
    const one = put('hsm/dke/1.0/libdke_pkcs11.so');
    expect(findLibrary(base, null, owner)).toBe(one);
    put('hsm/other/2.0/libother.so');
    expect(code(() => findLibrary(base, null, owner))).toBe('ORA-28376');
  });

  test('in PKCS11_LIBRARY_LOCATION begins under pkcs11/, is short enough, no link, and not writable by others', () => {
    const good = put('pkcs11/dke/1.0/libdke_pkcs11.so');
    expect(checkLibraryLocation(good, base, owner)).toEqual([]);
    expect(checkLibraryLocation(good, base, owner + 1)).not.toEqual([]);
    expect(code(() => findLibrary(base, join(base, 'hsm/dke/1.0/libdke_pkcs11.so'), owner))).toBe('ORA-46707');
    expect(checkLibraryLocation(put(`pkcs11/${'x'.repeat(250)}/lib.so`), base, owner)).toContain(
      'is longer than 255 characters',
    );
    symlinkSync(join(base, 'pkcs11/dke'), join(base, 'pkcs11/link'));
    expect(code(() => findLibrary(base, join(base, 'pkcs11/link/1.0/libdke_pkcs11.so'), owner))).toBe('ORA-46707');
    chmodSync(join(base, 'pkcs11/dke/1.0'), 0o775);
    expect(code(() => findLibrary(base, good, owner))).toBe('ORA-46707');
  });
});
