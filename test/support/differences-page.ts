// Writes docs/differences.md from the table of differences: node test/support/differences-page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programTable } from '../clients/differences.ts';
import { differenceTable } from '../conformance/reference/differences.ts';
import { rules } from '../conformance/reference/rules.ts';
import { wireTable } from '../conformance/reference/wires.ts';

export const differencesPage = (): string => `# Where the library differs from the standard

${rules.length} rules of PKCS#11 2.40 are checked on \`libdke_pkcs11.so\` and on SoftHSM2 with the same calls. Each rule that a token answers
otherwise than the standard is in one of the first two tables, with the reason; the rest hold on both. The tests compare the tokens
with the rules and this page with the tests (\`node test/support/differences-page.ts\` writes it).

## DKE

${differenceTable('DKE')}

## SoftHSM2

What a program may have got used to with SoftHSM2 and does not find here, or finds done by the letter of the standard.

${differenceTable('SoftHSM2')}

## Programs

pkcs11-tool, GnuTLS, OpenSSL, psql, nginx, OpenSSH, NSS, Java and graphene-pk11 do the same with both tokens, and are told the same, but for
this:

${programTable()}

## Through p11-kit

The rules are also checked through p11-kit: with its \`p11-kit-client.so\` on the agent’s own socket, and with our library on
\`p11-kit server\` over SoftHSM2. Version 0.24 carries only mechanisms whose parameters it knows: the others are
\`CKR_MECHANISM_INVALID\` on that way (SHA-224, PSS with a hash, EdDSA, AES but for ECB, key wrap and ECDH with the client; AES-CTR,
AES-GCM, PSS with a hash and ECDH with the server). And it answers this itself:

${wireTable()}
`;

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, '../../docs/differences.md'), differencesPage());
}
