// graphene-pk11 over its whole surface, on the built library with the real service, and on
// SoftHSM2: what its classes show of a token, objects of each class, and every operation that it
// has, whole and in parts, checked with node:crypto.
import {
  constants,
  createHash,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type JsonWebKey,
  publicEncrypt,
  randomBytes,
  verify,
} from 'node:crypto';
import * as graphene from 'graphene-pk11';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rvOf } from '../support/pkcs11-host.ts';
import { places } from '../support/template.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { lacks } from './differences.ts';

const {
  KeyGenMechanism,
  KeyType,
  MechanismEnum,
  MechanismFlag,
  Module,
  NamedCurve,
  ObjectClass,
  SessionFlag,
  UserType,
} = graphene;
/** The outcome of a call that reports to a callback. */
const promised = <Value>(call: (done: (error?: Error | null, value?: Value | null) => void) => void): Promise<Value> =>
  new Promise((resolve, reject) => {
    call((error, value) => {
      if (value === undefined || value === null) reject(error ?? new Error('neither an error nor a value'));
      else resolve(value);
    });
  });
const message = Buffer.from('a message of more than one block, for every hash');

describe.each(presentTokens)('graphene-pk11 with %s', (name) => {
  let token: Token;
  let module: graphene.Module;
  let session: graphene.Session;
  beforeAll(async () => {
    token = await startTokens[name]('graphene');
    Object.assign(process.env, token.environment);
    module = Module.load(token.module, token.name);
    module.initialize();
    session = module.getSlots(0).open(SessionFlag.SERIAL_SESSION | SessionFlag.RW_SESSION);
    session.login(token.pin, UserType.USER);
  });
  afterAll(async () => {
    module.finalize();
    module.close();
    await token.end();
  });

  const secret = { class: ObjectClass.SECRET_KEY, private: true } as const;
  const aes = (more: graphene.ITemplate = {}): graphene.SecretKey =>
    session.generateKey(KeyGenMechanism.AES, {
      ...secret,
      keyType: KeyType.AES,
      valueLen: 32,
      token: false,
      encrypt: true,
      decrypt: true,
      ...more,
    });
  const rsa = (place: boolean): graphene.IKeyPair =>
    session.generateKeyPair(
      KeyGenMechanism.RSA,
      {
        keyType: KeyType.RSA,
        modulusBits: 2048,
        publicExponent: Buffer.of(1, 0, 1),
        token: place,
        verify: true,
        encrypt: true,
        wrap: true,
      },
      { keyType: KeyType.RSA, token: place, sign: true, decrypt: true, unwrap: true, sensitive: true },
    );
  const ec = (place: boolean): graphene.IKeyPair =>
    session.generateKeyPair(
      KeyGenMechanism.ECDSA,
      { keyType: KeyType.ECDSA, token: place, verify: true, paramsECDSA: NamedCurve.getByName('secp256r1').value },
      { keyType: KeyType.ECDSA, token: place, sign: true, derive: true, sensitive: true },
    );
  const jwkOf = (key: graphene.PublicKey): JsonWebKey => {
    const base64url = (value: unknown): string => (value as Buffer).toString('base64url');
    if (key.type === KeyType.RSA) {
      const { modulus, publicExponent } = key.getAttribute({ modulus: null, publicExponent: null });
      return { kty: 'RSA', n: base64url(modulus), e: base64url(publicExponent) };
    }
    // An OCTET STRING of 04, x and y.
    const point = (key.getAttribute({ pointEC: null }).pointEC as Buffer).subarray(3);
    return { kty: 'EC', crv: 'P-256', x: base64url(point.subarray(0, 32)), y: base64url(point.subarray(32)) };
  };
  const nodeKey = (key: graphene.PublicKey) => createPublicKey({ key: jwkOf(key), format: 'jwk' });

  describe('what it shows', () => {
    test('the module', () => {
      expect(module.cryptokiVersion).toEqual({ major: 2, minor: 40 });
      expect(module.manufacturerID.trim()).toBe(name === 'DKE' ? 'DKE' : 'SoftHSM');
    });
    test('slot and token', () => {
      const slot = module.getSlots(0);
      expect(slot.flags & graphene.SlotFlag.TOKEN_PRESENT).toBe(graphene.SlotFlag.TOKEN_PRESENT);
      const { label, flags } = slot.getToken();
      expect(label.trim()).toBe('graphene');
      const expected =
        graphene.TokenFlag.LOGIN_REQUIRED | graphene.TokenFlag.TOKEN_INITIALIZED | graphene.TokenFlag.RNG;
      expect(flags & expected).toBe(expected);
    });
    test('mechanisms, by name', () => {
      const mechanisms = module.getSlots(0).getMechanisms();
      const flags = new Map<string, number>();
      for (let each = 0; each < mechanisms.length; each++) {
        const mechanism = mechanisms.items(each);
        flags.set(mechanism.name, mechanism.flags);
      }
      const both = MechanismFlag.ENCRYPT | MechanismFlag.DECRYPT;
      for (const cipher of ['AES_ECB', 'AES_CBC', 'AES_CBC_PAD', 'AES_CTR', 'AES_GCM']) {
        expect((flags.get(cipher) ?? 0) & both, cipher).toBe(both);
      }
      expect((flags.get('SHA256_RSA_PKCS_PSS') ?? 0) & MechanismFlag.SIGN).toBe(MechanismFlag.SIGN);
    });
    test('the session', () => {
      expect(session.flags & SessionFlag.RW_SESSION).toBe(SessionFlag.RW_SESSION);
    });
  });

  describe('objects', () => {
    test('a data object of the token is made, found, changed, copied and destroyed', () => {
      const made = session.create({
        class: ObjectClass.DATA,
        token: true,
        private: true,
        label: 'note',
        application: 'graphene',
        value: Buffer.from('text'),
      });
      const [found] = [session.find({ class: ObjectClass.DATA, label: 'note' }).items(0)];
      const data = found.toType<graphene.Data>();
      expect([data.label, data.application, data.value.toString()]).toEqual(['note', 'graphene', 'text']);
      made.setAttribute({ label: 'other' });
      expect(session.find({ label: 'note' })).toHaveLength(0);
      const copy = made.copy({ token: false, label: 'a copy' });
      expect(copy.toType<graphene.Data>().value.toString()).toBe('text');
      copy.destroy();
      made.destroy();
      expect(session.find({ label: 'other' })).toHaveLength(0);
    });
    test('a certificate keeps what it is given', () => {
      const value = randomBytes(500);
      const made = session.create({
        class: ObjectClass.CERTIFICATE,
        certType: graphene.CertificateType.X_509,
        token: true,
        label: 'certificate',
        id: Buffer.from('id'),
        subject: Buffer.from('3000', 'hex'),
        value,
      });
      const read = session.find({ class: ObjectClass.CERTIFICATE, value }).items(0).toType<graphene.X509Certificate>();
      expect(read.value).toEqual(value);
      expect(read.getAttribute({ id: null }).id).toEqual(Buffer.from('id'));
      made.destroy();
    });
    test('attributes of a key, and those that do not leave', () => {
      const key = aes({ token: true, sensitive: true, extractable: false, label: 'shown' });
      expect(key.getAttribute({ valueLen: null, local: null, alwaysSensitive: null, neverExtractable: null })).toEqual({
        valueLen: 32,
        local: true,
        alwaysSensitive: true,
        neverExtractable: true,
      });
      expect(rvOf(() => key.getAttribute({ value: null }))).toBe('CKR_ATTRIBUTE_SENSITIVE');
      expect(rvOf(() => key.setAttribute({ sensitive: false }))).toBe('CKR_ATTRIBUTE_READ_ONLY');
      key.destroy();
      expect(rvOf(() => key.getAttribute({ label: null }))).toBe('CKR_OBJECT_HANDLE_INVALID');
    });
    test('a search with a callback, and how many objects a template has', () => {
      const made = [1, 2, 3].map(() =>
        session.create({ class: ObjectClass.DATA, label: 'three', value: Buffer.of(1) }),
      );
      const seen: number[] = [];
      session.find({ label: 'three' }, (_, index) => {
        seen.push(index);
      });
      expect(seen).toEqual([0, 1, 2]);
      expect(session.destroy({ label: 'three' })).toBe(made.length);
    });
  });

  describe.each(places)('keys of the %s', (_, place) => {
    test.each([
      ['AES_ECB', false, 64],
      ['AES_CBC', true, 64],
      ['AES_CBC_PAD', true, 61],
    ] as const)('%s, whole and in parts', (mechanism, hasIv, length) => {
      const makeParameters = (): Buffer | null => (hasIv ? randomBytes(16) : null);
      const key = aes({ token: place, label: `${mechanism} ${place}` });
      const data = randomBytes(length);
      const cipher = { name: mechanism, params: makeParameters() };
      const sealed = session.createCipher(cipher, key).once(data, Buffer.alloc(128));
      expect(session.createDecipher(cipher, key).once(sealed, Buffer.alloc(128))).toEqual(data);
      const parts = { name: mechanism, params: makeParameters() };
      const encrypting = session.createCipher(parts, key);
      const inParts = Buffer.concat([
        encrypting.update(data.subarray(0, 5)),
        encrypting.update(data.subarray(5)),
        encrypting.final(),
      ]);
      const decrypting = session.createDecipher(parts, key);
      expect(Buffer.concat([decrypting.update(inParts), decrypting.final()])).toEqual(data);
      key.destroy();
    });
    test('AES_GCM', () => {
      const key = aes({ token: place, label: `AES_GCM ${place}` });
      const mechanism = { name: 'AES_GCM', params: new graphene.AesGcm240Params(randomBytes(12), message, 128) };
      const sealed = session.createCipher(mechanism, key).once(message, Buffer.alloc(128));
      expect(sealed).toHaveLength(message.length + 16);
      expect(session.createDecipher(mechanism, key).once(sealed, Buffer.alloc(128))).toEqual(message);
      sealed[0] = (sealed[0] ?? 0) ^ 1;
      const refusal = rvOf(() => session.createDecipher(mechanism, key).once(sealed, Buffer.alloc(128)));
      const lost = lacks(name, 'a GCM text that was changed');
      expect(refusal).toBe(lost ? 'CKR_GENERAL_ERROR' : 'CKR_ENCRYPTED_DATA_INVALID');
      key.destroy();
    });
    test('SHA256_HMAC, whole and in parts', () => {
      const value = randomBytes(64);
      const made = session.create({
        ...secret,
        keyType: KeyType.GENERIC_SECRET,
        value,
        token: place,
        label: `HMAC ${place}`,
        sign: true,
        verify: true,
      });
      const key = made.toType<graphene.SecretKey>();
      const mac = session.createSign('SHA256_HMAC', key).once(message);
      expect(mac).toEqual(createHmac('sha256', value).update(message).digest());
      const signing = session.createSign('SHA256_HMAC', key);
      signing.update(message.subarray(0, 10));
      signing.update(message.subarray(10));
      expect(signing.final()).toEqual(mac);
      const verifying = session.createVerify('SHA256_HMAC', key);
      verifying.update(message);
      expect(verifying.final(mac)).toBe(true);
      made.destroy();
    });
    test('RSA: signatures, PSS, OAEP', () => {
      const { publicKey, privateKey } = rsa(place);
      const theirs = nodeKey(publicKey);
      for (const hash of ['SHA256', 'SHA384', 'SHA512']) {
        const signature = session.createSign(`${hash}_RSA_PKCS`, privateKey).once(message);
        expect(verify(hash, message, theirs, signature)).toBe(true);
        expect(session.createVerify(`${hash}_RSA_PKCS`, publicKey).once(message, signature)).toBe(true);
      }
      const pss = {
        name: 'SHA256_RSA_PKCS_PSS',
        params: new graphene.RsaPssParams(MechanismEnum.SHA256, graphene.RsaMgf.MGF1_SHA256, 32),
      };
      const signing = session.createSign(pss, privateKey);
      signing.update(message);
      const signature = signing.final();
      const key = { key: theirs, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
      expect(verify('sha256', message, key, signature)).toBe(true);
      expect(session.createVerify(pss, publicKey).once(randomBytes(9), signature)).toBe(false);
      const oaep = {
        name: 'RSA_PKCS_OAEP',
        params: new graphene.RsaOaepParams(MechanismEnum.SHA1, graphene.RsaMgf.MGF1_SHA1),
      };
      const padding = { key: theirs, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' };
      const sealed = publicEncrypt(padding, message);
      expect(session.createDecipher(oaep, privateKey).once(sealed, Buffer.alloc(256))).toEqual(message);
      const own = session.createCipher(oaep, publicKey).once(message, Buffer.alloc(256));
      expect(session.createDecipher(oaep, privateKey).once(own, Buffer.alloc(256))).toEqual(message);
      publicKey.destroy();
      privateKey.destroy();
    });
    test('EC: signatures and agreement', () => {
      const { publicKey, privateKey } = ec(place);
      const theirs = nodeKey(publicKey);
      const signature = session.createSign('ECDSA', privateKey).once(createHash('sha256').update(message).digest());
      expect(verify('sha256', message, { key: theirs, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
      const peer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const { x = '', y = '' } = peer.publicKey.export({ format: 'jwk' });
      const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
      const agreement = { name: 'ECDH1_DERIVE', params: new graphene.EcdhParams(graphene.EcKdf.NULL, null, point) };
      const derived = session.deriveKey(agreement, privateKey, {
        ...secret,
        keyType: KeyType.GENERIC_SECRET,
        valueLen: 32,
        token: false,
        sensitive: false,
        extractable: true,
      });
      const { value } = derived.getAttribute({ value: null });
      expect(value).toEqual(diffieHellman({ privateKey: peer.privateKey, publicKey: theirs }));
      publicKey.destroy();
      privateKey.destroy();
    });
    test('a key is wrapped and unwrapped', () => {
      const uses = { wrap: true, unwrap: true, encrypt: false, decrypt: false } as const;
      const by = aes({ token: place, label: `wraps ${place}`, extractable: false, sensitive: true, ...uses });
      const readable = { sensitive: false, extractable: true } as const;
      const key = aes(readable);
      const wrapped = session.wrapKey('AES_KEY_WRAP', by, key);
      expect(wrapped).toHaveLength(40);
      const template = { ...secret, keyType: KeyType.AES, token: false, encrypt: true, ...readable };
      const back = session.unwrapKey('AES_KEY_WRAP', by, wrapped, template);
      expect(back.getAttribute({ value: null })).toEqual(key.getAttribute({ value: null }));
      by.destroy();
    });
  });

  describe('the rest', () => {
    test.each(['SHA_1', 'SHA224', 'SHA256', 'SHA384', 'SHA512'])('digest %s, whole and in parts', (mechanism) => {
      const expected = createHash(mechanism.replace('_', '')).update(message).digest();
      expect(session.createDigest(mechanism).once(message)).toEqual(expected);
      const digest = session.createDigest(mechanism);
      digest.update(message.subarray(0, 7));
      digest.update(message.subarray(7));
      expect(digest.final()).toEqual(expected);
    });
    test('random bytes', () => {
      expect(session.generateRandom(64).equals(session.generateRandom(64))).toBe(false);
    });
    test('with callbacks, without stopping the event loop', async () => {
      const other = module.getSlots(0).open(SessionFlag.SERIAL_SESSION | SessionFlag.RW_SESSION);
      const use = { token: false, encrypt: true, decrypt: true };
      const publicTemplate = {
        keyType: KeyType.RSA,
        modulusBits: 2048,
        publicExponent: Buffer.of(1, 0, 1),
        verify: true,
      };
      const [key, pair] = await Promise.all([
        promised<graphene.SecretKey>((done) => {
          session.generateKey(KeyGenMechanism.AES, { ...secret, keyType: KeyType.AES, valueLen: 16, ...use }, done);
        }),
        promised<graphene.IKeyPair>((done) => {
          const privateTemplate = { keyType: KeyType.RSA, sign: true };
          other.generateKeyPair(KeyGenMechanism.RSA, publicTemplate, privateTemplate, done);
        }),
      ]);
      expect(key.getAttribute({ valueLen: null }).valueLen).toBe(16);
      const signature = await promised<Buffer>((done) => {
        session.createSign('SHA256_RSA_PKCS', pair.privateKey).once(message, done);
      });
      expect(verify('sha256', message, nodeKey(pair.publicKey), signature)).toBe(true);
      const data = randomBytes(32);
      const ecb = { name: 'AES_ECB', params: null };
      const sealed = await promised<Buffer>((done) => {
        session.createCipher(ecb, key).once(data, Buffer.alloc(32), done);
      });
      expect(session.createDecipher(ecb, key).once(sealed, Buffer.alloc(32))).toEqual(data);
    });
    test('logout hides what is private, and login brings the token’s back', () => {
      aes({ token: true, label: 'hidden' });
      session.logout();
      expect(session.find({ label: 'hidden' })).toHaveLength(0);
      session.login(token.pin);
      expect(session.find({ label: 'hidden' })).toHaveLength(1);
      expect(rvOf(() => session.login(token.pin))).toBe('CKR_USER_ALREADY_LOGGED_IN');
    });
    test('clear destroys everything that may be destroyed', () => {
      expect(session.clear()).toBeGreaterThan(0);
      expect(session.find()).toHaveLength(0);
    });
  });
});
