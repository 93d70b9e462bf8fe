// The content of the runbooks: what the specification asks for by release, and that nothing in it stays unfilled.
import { describe, expect, test } from 'vitest';
import {
  containerNames,
  faultOfRunbook,
  fillRunbook,
  type Release,
  type RunbookName,
  type RunbookValues,
  releaseNames,
  runbookNames,
  runbookRow,
  runbookValues,
} from '../../../server/domain/runbooks.ts';

const values = Object.fromEntries(Object.keys(runbookValues).map((name) => [name, `(${name})`])) as RunbookValues;
const fill = (name: RunbookName, release: Release, containers: 'cdb' | 'non-cdb' = 'cdb') =>
  fillRunbook(name, release, release === '11g' ? 'non-cdb' : containers, values);
const textOf = (name: RunbookName, release: Release, containers?: 'cdb' | 'non-cdb'): string =>
  JSON.stringify(fill(name, release, containers)).replaceAll('\\"', '"');

const variants = runbookNames.flatMap((name) =>
  releaseNames.flatMap((release) =>
    containerNames.flatMap((containers) =>
      faultOfRunbook(name, release, containers) === undefined ? [{ name, release, containers }] : [],
    ),
  ),
);

describe('a runbook', () => {
  test.each(variants)('$name on $release ($containers) has steps, and no place stays unfilled', (variant) => {
    const { steps, title, summary } = fillRunbook(variant.name, variant.release, variant.containers, values);
    expect(steps.length).toBeGreaterThan(2);
    expect(JSON.stringify(steps)).not.toMatch(/\{[a-z]\w*\}/i);
    expect(`${title}${summary}`).not.toContain('{');
    expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length);
    for (const step of steps)
      expect(step.sql ?? step.shell ?? step.text ?? step.command, `${step.id} says what to do`).toBeTruthy();
  });

  test.each(variants)('$name on $release ($containers) has a literal password in each statement', (variant) => {
    const text = JSON.stringify(fillRunbook(variant.name, variant.release, variant.containers, values).steps);
    expect(text).not.toContain('EXTERNAL STORE');
    for (const [, what = ''] of text.matchAll(/IDENTIFIED BY (\S+)/g)) expect(what).toMatch(/^\\+"<\w+>\\+"/);
  });

  test('reverse migration is refused on 11g R2, with the release that it needs', () => {
    expect(faultOfRunbook('reverse-migrate', '11g', 'non-cdb')).toContain('12c to 18c or higher');
    expect(runbookRow('reverse-migrate').warnings.join()).toContain('11g R2 has no reverse migration');
  });

  test('11g R2 has no containers', () => {
    expect(faultOfRunbook('rotate', '11g', 'cdb')).toContain('no container databases');
  });

  test('a rotation names every container of a CDB, and is followed by a restart', () => {
    expect(textOf('rotate', '19c')).toContain('CONTAINER = ALL');
    expect(textOf('rotate', '19c', 'non-cdb')).not.toContain('CONTAINER = ALL');
    expect(textOf('rotate', '11g')).toContain('ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY');
    for (const release of releaseNames) expect(textOf('rotate', release)).toContain('SHUTDOWN IMMEDIATE');
  });

  test('a migration names the keystores as the release wants it', () => {
    expect(textOf('migrate', '19c')).toContain("TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE = BOTH");
    expect(textOf('migrate', '19c')).not.toContain('ENCRYPTION_WALLET_LOCATION');
    for (const release of ['11g', '12c-18c'] as const)
      expect(textOf('migrate', release)).toContain('ENCRYPTION_WALLET_LOCATION');
    expect(textOf('migrate', '11g')).toContain('orapki');
    expect(textOf('migrate', '12c-18c')).toContain('WITH BACKUP USING');
  });

  test('what protects backups and exports is said where keys move', () => {
    for (const name of ['migrate', 'reverse-migrate', 'restore', 'destroy'] as const)
      expect(runbookRow(name).warnings.join(' ')).toContain('ENCRYPTION_MODE=TRANSPARENT');
    for (const name of ['rotate', 'migrate', 'reverse-migrate', 'clone-pdb'] as const)
      expect(runbookRow(name).warnings.join(' ')).toContain('ORA-00988');
  });

  test('a destruction begins with a look at who shares the access_guid', () => {
    expect(fill('destroy', '19c').steps[0]?.id).toBe('access-guid');
    expect(textOf('destroy', '19c')).toContain('--distinct');
  });
});
