// Writes docs/differences.md from the table of differences: node test/support/differences-page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { differenceTable } from '../conformance/reference/differences.ts';
import { rules } from '../conformance/reference/rules.ts';

export const differencesPage = (): string => `# Where the library differs from the standard

${rules.length} rules of PKCS#11 2.40 are looked at on \`libdke_pkcs11.so\` and on SoftHSM2 with the same calls. Each rule that a token answers
otherwise than the standard is in one of the two tables, with the reason; the rest hold on both. The tests compare the tokens
with the rules and this page with the tests (\`node test/support/differences-page.ts\` writes it).

## DKE

${differenceTable('DKE')}

## SoftHSM2

What a program may have got used to with SoftHSM2 and does not find here, or finds done by the letter of the standard.

${differenceTable('SoftHSM2')}
`;

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, '../../docs/differences.md'), differencesPage());
}
