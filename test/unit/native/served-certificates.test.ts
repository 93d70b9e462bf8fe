// Certificates in files: accepted when unchanged, refused when a single bit differs.
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import {
  authorityOf,
  damageOf,
  distrustFault,
  fits,
  readServedCertificate,
  replacementFault,
} from '../../../server/app/tls/served-certificates.ts';
import { makeAuthority } from '../../support/authority.ts';
import { sharedFolder } from '../../support/folders.ts';

const folder = sharedFolder();

const toPem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
const toDer = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
const isRefused = (pem: string, selfSigned: boolean): boolean => {
  try {
    return damageOf(pem, selfSigned) !== undefined;
  } catch {
    return true;
  }
};

test('a self-signed certificate: each bit that is another is noticed', () => {
  const keyPath = join(folder, 'own.key');
  const pem = core.createSelfSignedCertificate({ keyPath, names: ['keys.example', '127.0.0.1'], days: 30 });
  expect(damageOf(pem, true)).toBeUndefined();
  expect(readServedCertificate(pem).names).toEqual(['keys.example', '127.0.0.1']);
  const whole = toDer(pem);
  const unnoticed: string[] = [];
  for (let at = 0; at < whole.length; at++)
    for (let bit = 0; bit < 8; bit++) {
      const der = Buffer.from(whole);
      der.writeUInt8(der.readUInt8(at) ^ (1 << bit), at);
      if (!isRefused(toPem(der), true)) unnoticed.push(`byte ${at} of ${whole.length}, bit ${bit}`);
    }
  expect(unnoticed).toEqual([]);
});

test('its key: with another bit it is refused, or still the same key', () => {
  const keyPath = join(folder, 'changed.key');
  const pem = core.createSelfSignedCertificate({ keyPath, names: ['keys.example'], days: 30 });
  const whole = readFileSync(keyPath, 'utf8');
  expect(fits(whole, pem)).toBe(true);
  const der = Buffer.from(whole.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  const secretOf = (key: string): string | undefined => createPrivateKey(key).export({ format: 'jwk' }).d;
  const unnoticed: string[] = [];
  for (let at = 0; at < der.length; at++)
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(der);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
      const key = `-----BEGIN PRIVATE KEY-----\n${changed.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`;
      let fitting = false;
      try {
        fitting = fits(key, pem);
      } catch {}
      if (fitting && secretOf(key) !== secretOf(whole)) unnoticed.push(`byte ${at} of ${der.length}, bit ${bit}`);
    }
  expect(unnoticed).toEqual([]);
});

test.each(['ec', 'rsa', 'ed25519'])('a key of the kind %s fits its own certificate, and not another one', (kind) => {
  const make = (name: string): readonly [string, string] => {
    const [key, certificate] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)];
    const algorithm = kind === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'] : [kind];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', ...algorithm, '-noenc', '-subj', `/CN=${name}`, '-keyout', key, '-out', certificate],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    return [readFileSync(key, 'utf8'), readFileSync(certificate, 'utf8')];
  };
  const [one, other] = [make(`${kind}-one`), make(`${kind}-other`)];
  expect(damageOf(one[1], true)).toBeUndefined();
  expect(fits(...one)).toBe(true);
  expect(fits(one[0], other[1])).toBe(false);
  expect(fits(one[0], '')).toBe(false);
});

test('a chain: the signatures of those whose issuer is in it; whose is not is believed, as is one out of order', () => {
  const authority = makeAuthority(folder, 'Example Root CA').below('Example Issuing CA');
  const { certificate } = authority.issue({ commonName: 'keys.example', names: ['DNS:keys.example'] });
  const chain = readFileSync(certificate, 'utf8');
  const [own = '', issuer = ''] = chain.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];
  expect(damageOf(chain, false)).toBeUndefined();
  expect(damageOf(issuer + own, false)).toBeUndefined();
  expect(damageOf(own, false)).toBeUndefined();
  const changed = toDer(own);
  const name = changed.lastIndexOf('keys.example');
  changed.write('kegs.example', name);
  expect(damageOf(toPem(changed) + issuer, false)).toMatch('its signature is not valid');
});

test('what contains no certificate', () => {
  expect(damageOf('', false)).toBe('it contains no certificate');
  expect(() => damageOf('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', false)).toThrow();
});

test('a self-signed certificate replaces another of a different subject, also where its key may not sign certificates', () => {
  const make = (name: string): string => {
    const path = (kind: string): string => join(folder, `replaced-${name}.${kind}`);
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '30'],
        ...['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:keys.example'],
        ...['-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'keyUsage=critical,digitalSignature'],
        ...['-keyout', path('key'), '-out', path('crt')],
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    return readFileSync(path('crt'), 'utf8');
  };
  // The certificates are created a little later.
  const now = Date.now() + 3_600_000;
  const replaced = { names: ['keys.example'], authorities: [], now };
  expect(replacementFault({ ...replaced, present: make('one'), next: make('two') })).toBeUndefined();
  const authority = makeAuthority(folder, 'Example Replaced CA');
  const chain = readFileSync(
    authority.below('Example Lower CA').issue({ commonName: 'keys.example', names: ['DNS:keys.example'] }).certificate,
    'utf8',
  );
  const [own = ''] = chain.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];
  expect(replacementFault({ ...replaced, present: make('three'), next: own })).toMatch('its chain is not complete');
});

test('a change of the issuer: of an authority, to or from a self-signed one, and none where an authority stays at the top', () => {
  const top = makeAuthority(folder, 'Example Kept CA');
  const request = { commonName: 'keys.example', names: ['DNS:keys.example'] };
  const chainBelow = (name: string): string => readFileSync(top.below(name).issue(request).certificate, 'utf8');
  const direct = readFileSync(top.issue(request).certificate, 'utf8');
  const other = readFileSync(makeAuthority(folder, 'Example Other CA').issue(request).certificate, 'utf8');
  const own = (name: string): string =>
    core.createSelfSignedCertificate({
      keyPath: join(folder, `issuer-${name}.key`),
      names: ['keys.example'],
      days: 30,
    });
  const [first, second] = [own('first'), own('second')];
  expect(distrustFault(chainBelow('Lower One'), chainBelow('Lower Two'))).toBeUndefined();
  expect(distrustFault(direct, chainBelow('Lower Three'))).toBeUndefined();
  expect(distrustFault(direct, direct + top.pem)).toBeUndefined();
  expect(distrustFault(direct + top.pem, direct)).toBeUndefined();
  expect(distrustFault(direct, other)).toMatch(
    'issued by CN=Example Other CA, and the one before by CN=Example Kept CA',
  );
  for (const [before, after] of [
    [direct, first],
    [first, direct],
    [first, second],
  ] as const)
    expect(distrustFault(before, after)).toMatch('clients that trust only the issuer before');
  expect(distrustFault(first, first)).toBeUndefined();
});

test('what clients have to trust: the last certificate of the chain, if it is its own issuer and the first one is for the name that they use', () => {
  const keyPath = join(folder, 'trusted.key');
  const own = core.createSelfSignedCertificate({ keyPath, names: ['keys.example', '127.0.0.1', '::1'], days: 30 });
  for (const host of ['keys.example', '127.0.0.1', '[::1]'])
    expect([host, authorityOf(own, host)]).toEqual([host, own]);
  // Another host answers at this address, such as a balancer with a certificate of its own.
  expect(authorityOf(own, 'balancer.example')).toBeNull();
  const authority = makeAuthority(folder, 'trusted');
  const issued = readFileSync(
    authority.issue({ commonName: 'keys.example', names: ['DNS:keys.example'] }).certificate,
    'utf8',
  );
  const root = readFileSync(authority.certificate, 'utf8');
  expect(authorityOf(issued, 'keys.example')).toBeNull();
  expect(authorityOf(`${issued}${root}`, 'keys.example')).toBe(root);
  expect(authorityOf('', 'keys.example')).toBeNull();
});
