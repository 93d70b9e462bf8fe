// What is generated from the tables of the code is checked in as it would be generated now.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generateLabels } from '../../addon/generate.ts';
import { generate } from '../../provider/schema/generate.ts';
import { generateClient } from '../../server/clients/typescript/generate.ts';
import { conformancePage } from '../support/conformance-page.ts';

const root = join(import.meta.dirname, '..', '..');

describe('generated files are fresh (npm run generate)', () => {
  test.each([...generateLabels(), ...generate(), ...generateClient()])('%s', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });
});

test('docs/conformance.md is fresh (node test/support/conformance-page.ts)', () => {
  expect(readFileSync(join(root, 'docs/conformance.md'), 'utf8')).toBe(conformancePage());
});
