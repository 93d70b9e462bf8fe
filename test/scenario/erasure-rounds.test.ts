// A database host that creates and destroys keys all the time: each destruction is followed by an
// erasure run over every record, RSA pairs among them. No call fails, and no unknown key remains.
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';
import { sizeOf } from '../support/tiers.ts';

let host: Pkcs11Host;
let session: Buffer;
beforeAll(async () => {
  host = await startHost();
  session = host.open();
});
afterAll(() => host?.stop());

const onToken = (label: string) => [
  { type: pkcs11js.CKA_TOKEN, value: true },
  { type: pkcs11js.CKA_LABEL, value: label },
];
const aes = [{ type: pkcs11js.CKA_VALUE_LEN, value: 32 }];
const generate = (label: string): Buffer =>
  host.pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [...onToken(label), ...aes]);
const tokenObjects = (): number => {
  host.pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_TOKEN, value: true }]);
  try {
    let found = 0;
    for (let many = 1; many > 0; found += many) many = host.pkcs11.C_FindObjects(session, 100).length;
    return found;
  } finally {
    host.pkcs11.C_FindObjectsFinal(session);
  }
};

const rounds = sizeOf('erasure rounds');

test(`${rounds} rounds of generate, create, destroy: no error, and no key is left over`, () => {
  for (let i = 0; i < 200; i++) generate(`AES ${i}`);
  for (let i = 0; i < 6; i++)
    host.pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
      [
        ...onToken(`RSA ${i}`),
        { type: pkcs11js.CKA_MODULUS_BITS, value: 2048 },
        { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.of(1, 0, 1) },
      ],
      onToken(`RSA ${i}`),
    );
  const before = tokenObjects();
  expect(before).toBe(212);
  const failed: string[] = [];
  for (let round = 0; round < rounds; round++) {
    // Each round uses the same labels, so remaining objects of the previous round would conflict.
    const rv = rvOf(() => {
      const key = generate('generated');
      const created = host.pkcs11.C_CreateObject(session, [
        ...onToken('created'),
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
        { type: pkcs11js.CKA_VALUE, value: Buffer.alloc(32, round) },
      ]);
      host.pkcs11.C_DestroyObject(session, key);
      host.pkcs11.C_DestroyObject(session, created);
    });
    if (rv !== 'CKR_OK') failed.push(`round ${round}: ${rv}`);
  }
  expect(failed).toEqual([]);
  expect(tokenObjects()).toBe(before);
});

test('every destroyed key becomes unrecoverable', async () => {
  const { api } = host.service;
  const pending = async () =>
    (await api.call<{ readonly erasure: { readonly pendingKeys: number } }>('GET', '/api/status')).erasure.pendingKeys;
  await expect.poll(pending, { interval: 100 }).toBe(0);
});
