// What is generated from provider/schema is checked in as it would be generated now.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generate } from '../../provider/schema/generate.ts';

const root = join(import.meta.dirname, '..', '..');

describe('generated files are fresh (npm run generate)', () => {
  test.each([...generate()])('%s', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });
});
