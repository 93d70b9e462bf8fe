// Each function of the core and of the library that takes bytes from outside stands in this table
// with the fuzz target that reaches it. A new one without a row fails, and so does a row whose
// target is not there or does not reach it. `npm run check:native` runs all targets. Every function
// with bytes among its parameters counts, but those below another one of the table, which are
// listed with their files.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

/** The target, or the function of a target that calls this one with what it was given. */
const targets: Readonly<Record<string, { readonly target: string; readonly through?: string }>> = {
  'base/base64.h DecodeBase64': { target: 'core-xks-body', through: 'ReadXksBody' },
  'base/json_reader.h ReadJsonObject': { target: 'core-xks-body', through: 'ReadXksBody' },
  'ciphers/message_state.h CipherState::Parse': { target: 'core-part-state' },
  'ciphers/message_state.h MacState::Parse': { target: 'core-part-state' },
  'ciphers/service_seal.h Open': { target: 'core-inputs' },
  'frames/next_frame.h ReadFrame': { target: 'core-next-frame' },
  'frames/replay_cache.h Answer': { target: 'core-replay' },
  'keys/key_check.h CheckPrivateForm': { target: 'core-records', through: 'ImportPrivateKey' },
  'keys/key_check.h CheckPublicForm': { target: 'core-records', through: 'ImportPublicKey' },
  'keys/key_table.h ImportPrivateKey': { target: 'core-records' },
  'keys/key_table.h ImportPublicKey': { target: 'core-records' },
  'keys/key_table.h ImportSecret': { target: 'core-records' },
  'keys/key_table.h OpenPrivateKey': { target: 'core-records', through: 'ImportPrivateKey' },
  'keys/key_table.h RestorePrivateKey': { target: 'core-records', through: 'OpenRecord' },
  'keys/rsa_numbers.h CompleteRsaKey': { target: 'core-inputs' },
  'public_key/agreement.h Ecdh': { target: 'core-inputs' },
  'public_key/agreement.h EcdhKey': { target: 'core-inputs', through: 'Ecdh' },
  'public_key/rsa_encryption.h RsaDecrypt': { target: 'core-inputs' },
  'public_key/signature.h Recover': { target: 'core-inputs' },
  'public_key/signature.h Verify': { target: 'core-inputs' },
  'root/root_file.h OpenRootFile': { target: 'core-records' },
  'wrapping/hpke.h HpkeOpen': { target: 'core-inputs', through: 'HpkeOpenKey' },
  'wrapping/hpke.h HpkeOpenKek': { target: 'core-inputs' },
  'wrapping/hpke.h HpkeOpenKey': { target: 'core-inputs' },
  'wrapping/key_record.h OpenRecord': { target: 'core-records' },
  'wrapping/key_record.h PeekRecord': { target: 'core-records', through: 'OpenRecord' },
  'wrapping/key_wrap.h UnwrapCipherValue': { target: 'core-inputs' },
  'wrapping/key_wrap.h UnwrapData': { target: 'core-inputs' },
  'wrapping/key_wrap.h UnwrapKey': { target: 'core-records' },
  'wrapping/key_wrap.h UnwrapValue': { target: 'core-inputs' },
  'xks/xks_body.h ReadXksBody': { target: 'core-xks-body' },
  'xks/xks_body.h XksDecrypt': { target: 'core-xks-body' },
  'base/base64.h EncodeBase64': { target: 'core-xks-body', through: 'XksEncrypt' },
  'ciphers/block_cipher.h CipherMessage': { target: 'core-messages' },
  'ciphers/block_cipher.h DeriveByEncryption': { target: 'core-messages' },
  'ciphers/block_cipher.h OneShot': { target: 'core-messages', through: 'CipherMessage' },
  'ciphers/block_cipher.h Update': { target: 'core-messages' },
  'digests/digest.h DigestMessage': { target: 'core-messages' },
  'digests/digest.h Update': { target: 'core-messages' },
  'digests/kdf.h Argon2id': { target: 'core-messages' },
  'digests/kdf.h HkdfInto': { target: 'core-messages', through: 'HkdfKey' },
  'digests/kdf.h HkdfKey': { target: 'core-messages' },
  'digests/kdf.h ScryptInto': { target: 'core-messages', through: 'ScryptKey' },
  'digests/kdf.h ScryptKey': { target: 'core-messages' },
  'digests/mac.h MacMessage': { target: 'core-messages' },
  'digests/mac.h Update': { target: 'core-messages' },
  'public_key/rsa_encryption.h RsaEncrypt': { target: 'core-inputs' },
  'public_key/signature.h Sign': { target: 'core-inputs' },
  'wrapping/hpke.h HpkeSealKek': { target: 'core-inputs' },
  'wrapping/hpke.h HpkeSealKey': { target: 'core-inputs' },
  'wrapping/hpke.h HpkeSealWith': { target: 'core-inputs', through: 'HpkeSealKey' },
  'wrapping/key_record.h ResealRecord': { target: 'core-records' },
  'wrapping/key_wrap.h WrapData': { target: 'core-inputs' },
  'xks/xks_body.h XksEncrypt': { target: 'core-xks-body' },
};

/**
 * Files whose functions have their bytes from functions of the table, and where it is not all of
 * them, which.
 */
const below: Readonly<Record<string, readonly string[] | 'all'>> = {
  'base/bytes.h': 'all',
  'base/random.h': 'all',
  'ciphers/block_cipher.h': ['Open', 'Transform'],
  'ciphers/ccm.h': 'all',
  'ciphers/mac_parts.h': 'all',
  'ciphers/mode_blocks.h': 'all',
  'ciphers/service_seal.h': ['Context', 'Mac', 'Of', 'Seal'],
  'digests/digest_state.h': 'all',
  'digests/hedge.h': 'all',
  'frames/frame_bytes.h': 'all',
  'frames/frame_loop.h': 'all',
  'frames/lane.h': 'all',
  'frames/replay_cache.h': ['Begin', 'Finish', 'Last', 'MayStart', 'Update'],
  // An IV is compared and hashed, whatever it is.
  'keys/used_ivs.h': 'all',
  // A PIN, which the module of its maker reads.
  'root/token_login.h': 'all',
};

const takesBytes = /const uint8_t\s*\*|const RsaNumbers&|const XksBody&|const HeldPkey&/;
/** Names of functions that interpret the file whose path they take. */
const reads = /^(?:Open|Read|Parse)/;

/**
 * Functions that a header of the core declares and that take bytes apart; members with the type
 * that they belong to.
 */
const declared = (path: string): string[] => {
  const text = withoutComments(read(path));
  const name = path.replace('addon/core/', '');
  return [
    ...text.matchAll(/(?:^|\n)(?<indent> *)[\w:<>,&* ]*?[&*> ](?<name>\w+)\((?<parameters>[^;{()]*)\)[^;{}]*;/g),
  ].flatMap(({ groups, index }) => {
    const { indent = '', name: found = '', parameters = '' } = groups ?? {};
    const looks = takesBytes.test(parameters) || (reads.test(found) && /const std::string& path/.test(parameters));
    const lower = below[name];
    if (!looks || lower === 'all' || lower?.includes(found) === true) return [];
    const type = indent === '' ? '' : (/(?:struct|class) (\w+)[^;{]*\{[\s\S]*$/.exec(text.slice(0, index))?.[1] ?? '');
    const owner =
      found === 'Parse' ? `${[...text.slice(0, index).matchAll(/\nstruct (\w+) \{/g)].at(-1)?.[1] ?? type}::` : '';
    return [`${name} ${owner}${found}`];
  });
};

const fuzz = files(['test/native/fuzz'], '.c', '.cc');
const found = [...new Set(files(['addon/core'], '.h').flatMap(declared))].sort();

test('every function of the core that takes bytes from outside has a fuzz target', () => {
  // These functions read files without interpreting the bytes.
  const inside = ['base/secret_files.h OpenSecretFile', 'base/secret_files.h ReadAt'];
  expect(found.filter((each) => !inside.includes(each) && targets[each] === undefined)).toEqual([]);
  expect(Object.keys(targets).filter((each) => !found.includes(each))).toEqual([]);
});

test('every target reaches the functions that it is named for', () => {
  const wrong = Object.entries(targets).filter(([each, { target, through }]) => {
    const path = fuzz.find((source) => source.endsWith(`/${target}.cc`));
    const name = through ?? /(?:\w+::)?\w+$/.exec(each)?.[0] ?? '';
    return path === undefined || !new RegExp(`(?:\\b|\\.)${name}\\(`).test(withoutComments(read(path)));
  });
  expect(wrong).toEqual([]);
});

/** What of the library reads replies of the agent, or structures of a caller. */
const readers: Readonly<Record<string, string>> = {
  'provider/module/message/buffer.c': 'module-codec',
  'provider/module/call/call.c': 'module-abi',
  'provider/module/message/argument_codec.c': 'module-codec',
  'provider/module/connection/connect.c': 'module-abi',
  'provider/module/call/delivery.c': 'module-abi',
  'provider/module/host/last_cause.c': 'module-abi',
  'provider/module/entry/gen/entries.c': 'module-abi',
  'provider/module/connection/leader.c': 'module-abi',
  'provider/module/message/mechanism.c': 'module-abi',
  'provider/module/call/large_parts.c': 'module-abi',
  'provider/module/connection/transport.c': 'module-abi',
};

/**
 * What of MariaDB's plugin reads a file. Calls of MariaDB are in plugin.c, and replies of the
 * library come from its own functions.
 */
const filesOfPlugin = ['binding', 'import', 'key_file'];

test("every file of MariaDB's plugin that reads another one has a fuzz target", () => {
  const reading = files(['provider/mariadb'], '.c').filter((path) => /\bread\(/.test(withoutComments(read(path))));
  expect(reading).toEqual(filesOfPlugin.map((name) => `provider/mariadb/${name}.c`));
  const target = withoutComments(read('test/native/fuzz/mariadb-files.c'));
  for (const reader of ['binding_check', 'import_keys', 'key_file_parse']) expect(target).toContain(`${reader}(`);
});

test('every file of the library that reads a reply has a fuzz target', () => {
  const reading = files(['provider/module'], '.c').filter((path) =>
    /\bbuffer_(?:get|take|peek)\w*\(/.test(withoutComments(read(path))),
  );
  expect(reading.filter((path) => readers[path] === undefined)).toEqual([]);
  const names = fuzz.map((path) => path.replace(/^.*\/|\.cc?$/g, ''));
  expect(names).toEqual(
    expect.arrayContaining([...new Set(Object.values(readers)), 'core-frames', 'core-lane', 'core-threads']),
  );
});
