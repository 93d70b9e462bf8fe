// Writes docs/differences.md from the table of differences: node test/support/differences-page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programTable } from '../clients/differences.ts';
import { differenceTable } from '../conformance/reference/differences.ts';
import { rules } from '../conformance/reference/rules.ts';
import { wireTable } from '../conformance/reference/wires.ts';

export const differencesPage = (): string => `# Where the library differs from the standard

This page is for developers. It shows where \`libdke_pkcs11.so\` and SoftHSM2 differ from PKCS#11
2.40, and why. The tests check ${rules.length} rules with the same calls on both libraries. Both follow all
rules that are not in the first two tables. The tests also compare this page with their results
(\`node test/support/differences-page.ts\` writes it).

## DKE

${differenceTable('DKE')}

## SoftHSM2

A program written for SoftHSM2 may depend on these differences. DKE follows the standard there.

${differenceTable('SoftHSM2')}

## Programs

pkcs11-tool, GnuTLS, OpenSSL, psql, nginx, OpenSSH, NSS, Java and graphene-pk11 get the same results
and return values with both libraries, with these exceptions:

${programTable()}

## Through p11-kit

The rules are also checked through p11-kit: with its \`p11-kit-client.so\` on the agent’s own socket,
and with DKE’s library on \`p11-kit server\` over SoftHSM2. Version 0.24 supports only mechanisms
whose parameters it knows. These others fail with \`CKR_MECHANISM_INVALID\`:

- with the client: SHA-224, PSS with a hash, EdDSA, AES except ECB, key wrap and ECDH
- with the server: AES-CTR, AES-GCM, PSS with a hash and ECDH

p11-kit itself answers these rules differently:

${wireTable()}
`;

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, '../../docs/differences.md'), differencesPage());
}
