// Where random values come from: the core's generators, which take fresh bytes of the kernel with
// each draw (addon/core/base/random.cc), so that two copies of one running machine draw different
// ones. A file that begins to draw elsewhere fails here until it is declared with the reason.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const inNative =
  /\b(?:RAND_\w+|EVP_RAND_\w+|EVP_PKEY_Q_keygen|EVP_PKEY_(?:generate|keygen|paramgen)|(?:EC|RSA)_\w*generate_key\w*|BN_(?:priv_|pseudo_)?rand\w*|BN_generate_prime\w*|getrandom|getentropy|arc4random\w*|s?rand(?:om)?(?:_r)?|[a-z]rand48)\s*\(|urandom/;
const inService =
  /\b(?:random(?:Bytes|UUID|Int|Fill|FillSync)|getRandomValues|(?<!tde\.)generateKey(?:Pair)?(?:Sync)?|generatePrime(?:Sync)?)\(|\bMath\.random\b/;

const declared: Readonly<Record<string, string>> = {
  'addon/core/base/random.cc': 'the one place',
  'addon/core/keys/rsa_numbers.cc': 'numbers that are tried until one shows the factors of a modulus: any are right',
  'provider/glibc/shims.c': "what newer systems have as arc4random, for libcrypto's callers",
  'provider/mariadb/secret.c': 'the kernel itself; the plugin has no other generator',
  'provider/install/owned-files.ts': 'names of temporary files',
  'provider/install/guids.ts': 'a key of this run, which goes with it',
  'server/app/open/instance-lock.ts':
    'what two copies of a data directory have in common, and a question that is asked once',
  'server/cli/service/own-file.ts': 'names of temporary files',
  'server/base/ids.ts': 'identifiers of rows, which the store refuses when they are there',
  'server/adapters/diagnosis/checks/round-trip.ts': 'data of a check',
  'server/adapters/diagnosis/probe.ts': 'the identifier of a request of a check',
  'server/app/tls/served-certificates.ts': 'what a key signs to show that it is the one of its certificate',
  'server/operations/requests/xks-latency.ts': 'a name of this process in its rows',
  'server/adapters/store/engine/postgres/postgres-engine.ts': 'a name of this process in the list of connections',
};

/** Programs that run elsewhere: browsers, programs of users, and the simulated cloud. */
const elsewhere = /^server\/clients\//;

const drawing = [
  ...files(['addon', 'provider'], '.c', '.cc', '.h').filter((path) => inNative.test(withoutComments(read(path)))),
  ...files(['addon', 'provider', 'server'], '.ts').filter(
    (path) =>
      !elsewhere.test(path) && /node:crypto|\bcrypto\./.test(read(path)) && inService.test(withoutComments(read(path))),
  ),
].sort();

test('random values come from the core, or the reason why not is here', () => {
  expect(drawing.filter((path) => declared[path] === undefined)).toEqual([]);
  expect(Object.keys(declared).filter((path) => !drawing.includes(path))).toEqual([]);
});

test('tests draw from seeds that are the same in each run of the short tier: support/property.ts', () => {
  const others = files(['test'], '.ts').filter(
    (path) => path !== 'test/support/property.ts' && /^import .* from 'fast-check';/m.test(read(path)),
  );
  expect(others).toEqual([]);
});
