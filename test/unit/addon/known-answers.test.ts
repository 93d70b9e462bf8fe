// Known answers from the standards themselves, so that the tests mean something without the folder
// of vectors: AES in ECB, CBC and CTR (SP 800-38A, appendix F), CCM (SP 800-38C, appendix C; RFC
// 3610, section 8), GCM (the test cases of its specification, which SP 800-38D keeps), CMAC (SP
// 800-38B, appendix D), key wrap (RFC 3394 section 4, RFC 5649 section 6), SHA-1 and SHA-2 (FIPS
// 180-4 examples), SHA-3 (FIPS 202 examples), HMAC (RFC 4231; NIST's examples for SHA-3), HKDF (RFC
// 5869).
import { describe, expect, test } from 'vitest';
import type { CipherParameters, Digest } from '../../../addon/core.ts';
import {
  aesKey,
  core,
  digestLength,
  genericKey,
  runCipher,
  runDigest,
  runMac,
  withKey,
} from '../../support/core-keys.ts';
import { hex } from '../../support/vectors.ts';

const blocks = hex(
  '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51' +
    '30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
);
const keys = {
  128: '2b7e151628aed2a6abf7158809cf4f3c',
  192: '8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b',
  256: '603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4',
} as const;
const ecb = { algorithm: 'aes-ecb' } as const;
const cbc = { algorithm: 'aes-cbc', iv: hex('000102030405060708090a0b0c0d0e0f') } as const;
const ctr = { algorithm: 'aes-ctr', iv: hex('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff') } as const;

type Row = readonly [section: string, bits: keyof typeof keys, parameters: CipherParameters, ciphertext: string];
const modes: readonly Row[] = [
  [
    'F.1.1',
    128,
    ecb,
    '3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4',
  ],
  [
    'F.1.3',
    192,
    ecb,
    'bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e',
  ],
  [
    'F.1.5',
    256,
    ecb,
    'f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7',
  ],
  [
    'F.2.1',
    128,
    cbc,
    '7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7',
  ],
  [
    'F.2.3',
    192,
    cbc,
    '4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd',
  ],
  [
    'F.2.5',
    256,
    cbc,
    'f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b',
  ],
  [
    'F.5.1',
    128,
    ctr,
    '874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee',
  ],
  [
    'F.5.3',
    192,
    ctr,
    '1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050',
  ],
  [
    'F.5.5',
    256,
    ctr,
    '601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6',
  ],
];

describe('AES, SP 800-38A', () => {
  test.each(modes)('%s, AES-%i', (_, bits, parameters, ciphertext) => {
    withKey(aesKey(hex(keys[bits])), (key) => {
      expect(runCipher(key, 'encrypt', parameters, blocks).toString('hex')).toBe(ciphertext);
      expect(runCipher(key, 'decrypt', parameters, hex(ciphertext)).toString('hex')).toBe(blocks.toString('hex'));
    });
  });

  test('CBC with padding is CBC with PKCS#7 padding appended', () => {
    withKey(aesKey(hex(keys[256])), (key) => {
      for (let length = 0; length <= 48; length++) {
        const message = blocks.subarray(0, length);
        const pad = 16 - (length % 16);
        const padded = runCipher(key, 'encrypt', cbc, Buffer.concat([message, Buffer.alloc(pad, pad)]));
        expect(runCipher(key, 'encrypt', { ...cbc, algorithm: 'aes-cbc-pad' }, message)).toEqual(padded);
      }
    });
  });
});

describe('AES-GCM, SP 800-38D', () => {
  const iv = hex('cafebabefacedbaddecaf888');
  const message = hex(
    'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
  );
  const aad = hex('feedfacedeadbeeffeedfacedeadbeefabaddad2');
  const secret = 'feffe9928665731c6d6a8f9467308308';
  test.each([
    [
      'test case 4',
      secret,
      '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091',
      '5bc94fbc3221a5db94fae95ae7121a47',
    ],
    [
      'test case 16',
      secret + secret,
      '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
      '76fc6ece0f4e1768cddf8853bb2d551b',
    ],
  ])('%s', (_, value, ciphertext, tag) => {
    withKey(aesKey(hex(value)), (key) => {
      for (const tagLength of [12, 13, 14, 15, 16]) {
        const parameters = { algorithm: 'aes-gcm', iv, aad, tagLength } as const;
        const sealed = ciphertext + tag.slice(0, 2 * tagLength);
        expect(runCipher(key, 'encrypt', parameters, message).toString('hex')).toBe(sealed);
        expect(runCipher(key, 'decrypt', parameters, hex(sealed))).toEqual(message);
      }
    });
  });
});

describe('AES-CCM', () => {
  const counting = (from: number, length: number): Buffer => Buffer.from(Array.from({ length }, (_, at) => from + at));
  test.each([
    [
      'SP 800-38C, example 3',
      counting(0x40, 16),
      counting(0x10, 12),
      counting(0, 20),
      counting(0x20, 24),
      8,
      'e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5484392fbc1b09951',
    ],
    [
      'SP 800-38C, example 4',
      counting(0x40, 16),
      counting(0x10, 13),
      counting(0, 65_536),
      counting(0x20, 32),
      14,
      '69915dad1e84c6376a68c2967e4dab615ae0fd1faec44cc484828529463ccf72b4ac6bec93e8598e7f0dadbcea5b',
    ],
    [
      'RFC 3610, packet vector 1',
      counting(0xc0, 16),
      hex('00000003020100a0a1a2a3a4a5'),
      counting(0, 8),
      counting(8, 23),
      8,
      '588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0',
    ],
  ] as const)('%s', (_, value, iv, aad, message, tagLength, sealed) => {
    withKey(aesKey(value), (key) => {
      const parameters = { algorithm: 'aes-ccm', iv, aad, tagLength, dataLength: message.length } as const;
      expect(runCipher(key, 'encrypt', parameters, message).toString('hex')).toBe(sealed);
      expect(runCipher(key, 'decrypt', parameters, hex(sealed))).toEqual(message);
    });
  });
});

describe('AES-CMAC, SP 800-38B', () => {
  const lengths = [0, 16, 40, 64] as const;
  test.each([
    [
      128,
      [
        'bb1d6929e95937287fa37d129b756746',
        '070a16b46b4d4144f79bdd9dd04a287c',
        'dfa66747de9ae63030ca32611497c827',
        '51f0bebf7e3b9d92fc49741779363cfe',
      ],
    ],
    [
      192,
      [
        'd17ddf46adaacde531cac483de7a9367',
        '9e99a7bf31e710900662f65e617c5184',
        '8a1de5be2eb31aad089a82e6ee908b0e',
        'a1d5df0eed790f794d77589659f39a11',
      ],
    ],
    [
      256,
      [
        '028962f61b7bf89efc6b551f4667d983',
        '28a7023f452e8f82bd4bf28d8c37c35c',
        'aaf3d8f1de5640c232f5b169b9c911e6',
        'e1992190549f6ed5696a2c056c315410',
      ],
    ],
  ] as const)('AES-%i', (bits, macs) => {
    withKey(aesKey(hex(keys[bits])), (key) => {
      const made = lengths.map((length) => runMac(key, { algorithm: 'aes-cmac' }, blocks.subarray(0, length)));
      expect(made.map((mac) => mac.toString('hex'))).toEqual(macs);
    });
  });
});

describe('AES key wrap', () => {
  const kek = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
  const data = '00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f';
  test.each([
    ['RFC 3394, 4.1', kek.slice(0, 32), data.slice(0, 32), '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5', false],
    ['RFC 3394, 4.2', kek.slice(0, 48), data.slice(0, 32), '96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d', false],
    ['RFC 3394, 4.3', kek, data.slice(0, 32), '64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7', false],
    [
      'RFC 3394, 4.6',
      kek,
      data,
      '28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21',
      false,
    ],
    [
      'RFC 5649, 6 (20 bytes)',
      '5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8',
      'c37b7e6492584340bed12207808941155068f738',
      '138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a',
      true,
    ],
    [
      'RFC 5649, 6 (7 bytes)',
      '5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8',
      '466f7250617369',
      'afbeb0f07dfbf5419200f2ccb50bb24f',
      true,
    ],
  ] as const)('%s', (_, wrapping, plain, wrapped, padded) => {
    withKey(aesKey(hex(wrapping)), (key) => {
      expect(core.wrapData(key, { padded }, hex(plain)).toString('hex')).toBe(wrapped);
      expect(core.unwrapData(key, { padded }, hex(wrapped)).toString('hex')).toBe(plain);
    });
  });
});

describe('SHA-1 and SHA-2, FIPS 180-4', () => {
  const longer = Buffer.from('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq');
  const rows: readonly (readonly [Digest, string, string])[] = [
    ['sha1', 'a9993e364706816aba3e25717850c26c9cd0d89d', '84983e441c3bd26ebaae4aa1f95129e5e54670f1'],
    [
      'sha224',
      '23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7',
      '75388b16512776cc5dba5da1fd890150b0c6455cb4f58b1952522525',
    ],
    [
      'sha256',
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    ],
    [
      'sha384',
      'cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7',
      '3391fdddfc8dc7393707a65b1b4709397cf8b1d162af05abfe8f450de5f36bc6b0455a8520bc4e6f5fe95b1fe3c8452b',
    ],
    [
      'sha512',
      'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
      '204a8fc6dda82f0a0ced7beb8e08a41657c16ef468b228a8279be331a703c33596fd15c13b1b07f9aa1d3bea57789ca031ad85c7a71dd70354ec631238ca3445',
    ],
  ];
  test.each(rows)('%s', (digest, abc, two) => {
    expect(runDigest(digest, Buffer.from('abc')).toString('hex')).toBe(abc);
    expect(runDigest(digest, longer).toString('hex')).toBe(two);
  });
});

describe('SHA-512/224, SHA-512/256 and SHA-3 of abc', () => {
  const rows: readonly (readonly [Digest, string])[] = [
    ['sha512-224', '4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa'],
    ['sha512-256', '53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23'],
    ['sha3-224', 'e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf'],
    ['sha3-256', '3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532'],
    ['sha3-384', 'ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25'],
    [
      'sha3-512',
      'b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0',
    ],
  ];
  test.each(rows)('%s', (digest, abc) => {
    expect(runDigest(digest, Buffer.from('abc')).toString('hex')).toBe(abc);
  });
});

describe('HMAC with SHA-3, the key as long as the digest', () => {
  const rows: readonly (readonly [Digest, string])[] = [
    ['sha3-224', '332cfd59347fdb8e576e77260be4aba2d6dc53117b3bfb52c6d18c04'],
    ['sha3-256', '4fe8e202c4f058e8dddc23d8c34e467343e23555e24fc2f025d598f558f67205'],
    ['sha3-384', 'd588a3c51f3f2d906e8298c1199aa8ff6296218127f6b38a90b6afe2c5617725bc99987f79b22a557b6520db710b7f42'],
    [
      'sha3-512',
      '4efd629d6c71bf86162658f29943b1c308ce27cdfa6db0d9c3ce81763f9cbce5f7ebe9868031db1a8f8eb7b6b95e5c5e3f657a8996c86a2f6527e307f0213196',
    ],
  ];
  test.each(rows)('%s', (digest, mac) => {
    const value = Buffer.from(Array.from({ length: digestLength(digest) }, (_, at) => at));
    withKey(genericKey(value), (key) => {
      const message = Buffer.from('Sample message for keylen<blocklen');
      expect(runMac(key, { algorithm: 'hmac', digest }, message).toString('hex')).toBe(mac);
    });
  });
});

describe('HMAC, RFC 4231', () => {
  const fill = (byte: number, count: number): string => byte.toString(16).padStart(2, '0').repeat(count);
  const text = (words: string): string => Buffer.from(words).toString('hex');
  const rows: readonly (readonly [string, string, string, Digest, string])[] = [
    ['4.2', fill(0x0b, 20), text('Hi There'), 'sha224', '896fb1128abbdf196832107cd49df33f47b4b1169912ba4f53684b22'],
    [
      '4.2',
      fill(0x0b, 20),
      text('Hi There'),
      'sha256',
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      '4.2',
      fill(0x0b, 20),
      text('Hi There'),
      'sha384',
      'afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6',
    ],
    [
      '4.2',
      fill(0x0b, 20),
      text('Hi There'),
      'sha512',
      '87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854',
    ],
    [
      '4.3',
      text('Jefe'),
      text('what do ya want for nothing?'),
      'sha256',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      '4.4',
      fill(0xaa, 20),
      fill(0xdd, 50),
      'sha256',
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      '4.7',
      fill(0xaa, 131),
      text('Test Using Larger Than Block-Size Key - Hash Key First'),
      'sha256',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
  ];
  test.each(rows)('%s', (_, value, message, digest, mac) => {
    withKey(genericKey(hex(value)), (key) => {
      expect(runMac(key, { algorithm: 'hmac', digest }, hex(message)).toString('hex')).toBe(mac);
    });
  });
});

test('HKDF, RFC 5869, A.1, the salt as bytes and as a key', () => {
  withKey(genericKey(Buffer.alloc(22, 0x0b)), (key) => {
    const bytes = hex('000102030405060708090a0b0c');
    withKey(genericKey(bytes), (saltKey) => {
      for (const salt of [bytes, saltKey]) {
        const derived = core.hkdf(key, 'sha256', salt, hex('f0f1f2f3f4f5f6f7f8f9'), 'generic', 42);
        expect(withKey(derived, () => core.exportSecret(derived)).toString('hex')).toBe(
          '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
        );
      }
    });
  });
});
