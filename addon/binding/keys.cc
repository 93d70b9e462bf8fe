// Memory, random bytes and keys (Core in open-core.ts: "memory", "keys", "key wrap").
#include <openssl/crypto.h>

#include "../core/public_key/agreement.h"
#include "../core/ciphers/block_cipher.h"
#include "../core/digests/kdf.h"
#include "../core/keys/key_check.h"
#include "../core/wrapping/key_wrap.h"
#include "../core/base/random.h"
#include "../core/keys/rsa_numbers.h"
#include "../core/base/secure_buffer.h"
#include "../core/keys/used_ivs.h"
#include "../core/root/token_login.h"
#include "arguments.h"
#include "jobs.h"

namespace dke {
namespace {

constexpr size_t kDefaultArena = size_t{4} << 20;

napi_value MemoryObject(const Arguments& arguments) {
  const MemoryStatus status = KeyArenaStatus();
  napi_value object = arguments.NewObject();
  arguments.Set(object, "capacity", arguments.ReturnNumber(static_cast<double>(status.capacity)));
  arguments.Set(object, "used", arguments.ReturnNumber(static_cast<double>(status.used)));
  arguments.Set(object, "keys", arguments.ReturnNumber(static_cast<double>(KeyCount())));
  arguments.Set(object, "operations", arguments.ReturnNumber(static_cast<double>(OperationCount())));
  arguments.Set(object, "locked", arguments.ReturnBoolean(status.locked));
  return object;
}

napi_value Initialize(const Arguments& arguments) {
  size_t bytes = kDefaultArena;
  size_t least = 0;
  bool allow_unlocked = false;
  if (arguments.has(0)) {
    const auto read = [&](const char* name, size_t* into) {
      napi_value size = arguments.Member(arguments.at(0), name);
      if (size == nullptr) return;
      const double number = arguments.NumberOf(size);
      if (!(number >= 0 && number <= 4294967296.0)) arguments.Refuse("the key arena must have 128 KiB to 4 GiB");
      *into = static_cast<size_t>(number);
    };
    read("arenaBytes", &bytes);
    read("leastArenaBytes", &least);
    if (napi_value allow = arguments.Member(arguments.at(0), "allowUnlocked")) allow_unlocked = arguments.BooleanOf(allow);
  }
  (void)arguments.Unwrap(InitializeMemory(bytes, least == 0 ? bytes : least, allow_unlocked));
  return MemoryObject(arguments);
}

napi_value WipeBuffer(const Arguments& arguments) {
  const Bytes bytes = arguments.ReadBytes(0);
  Wipe(bytes.data, bytes.size);
  return nullptr;
}

napi_value Random(const Arguments& arguments) {
  const Bytes bytes = arguments.ReadBytes(0);
  arguments.Unwrap(RandomPublic(bytes.data, bytes.size));
  return nullptr;
}

// The key's identities from the third argument on.
template <bool (*Use)(uint64_t, const std::vector<KeyIdentity>&, const uint8_t*, size_t)>
napi_value UseIv(const Arguments& arguments) {
  const auto owner = static_cast<uint64_t>(arguments.Integer(0, 0, int64_t{1} << 53));
  const Bytes iv = arguments.ReadBytes(1);
  std::vector<KeyIdentity> identities;
  for (size_t i = 2; i < 4 && arguments.has(i); ++i) {
    const Bytes identity = arguments.ReadBytes(i);
    identities.push_back({identity.data, identity.size});
  }
  if (identities.empty()) arguments.Refuse("an IV is used by a key");
  return arguments.ReturnBoolean(Use(owner, identities, iv.data, iv.size));
}

napi_value MakeIvOwner(const Arguments& arguments) { return arguments.ReturnNumber(static_cast<double>(NewIvOwner())); }

napi_value EndOwner(const Arguments& arguments) {
  EndIvOwner(static_cast<uint64_t>(arguments.Integer(0, 0, int64_t{1} << 53)));
  return nullptr;
}

napi_value TimingSafeEqual(const Arguments& arguments) {
  const Bytes a = arguments.ReadBytes(0);
  const Bytes b = arguments.ReadBytes(1);
  return arguments.ReturnBoolean(a.size == b.size && CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}

napi_value ReturnKey(const Arguments& arguments, Result<KeyRef> key) {
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(std::move(key))));
}

napi_value ReturnLoose(const Arguments& arguments, Result<LooseKey> key) {
  return ReturnKey(arguments, AddKey(arguments.Unwrap(std::move(key))));
}

napi_value Aes(const Arguments& arguments) { return ReturnKey(arguments, GenerateAes(static_cast<int>(arguments.Integer(0, 0, 256)))); }
napi_value Generic(const Arguments& arguments) {
  return ReturnKey(arguments, GenerateSecret(KeyKind::kGeneric, static_cast<size_t>(arguments.Integer(0, 0, 4096))));
}
napi_value Kek(const Arguments& arguments) { return ReturnKey(arguments, GenerateSecret(KeyKind::kKek, 32)); }
napi_value Rsa(const Arguments& arguments) { return ReturnKey(arguments, GenerateRsa(static_cast<int>(arguments.Integer(0, 0, 1 << 16)))); }
napi_value Ec(const Arguments& arguments) {
  const CurveRow* curve = FindCurve(arguments.Text(0));
  if (curve == nullptr) arguments.Refuse("no such curve");
  return ReturnKey(arguments, GenerateEc(curve->curve));
}

napi_value Import(const Arguments& arguments) {
  const KeyKind kind = arguments.ReadKeyKind(0);
  const Bytes value = arguments.ReadBytes(1);
  return ReturnKey(arguments, ImportSecret(kind, value.data, value.size));
}
napi_value ImportPrivate(const Arguments& arguments) {
  const Bytes der = arguments.ReadBytes(0);
  return ReturnKey(arguments, ImportPrivateKey(der.data, der.size));
}
napi_value ImportPublic(const Arguments& arguments) {
  const Bytes der = arguments.ReadBytes(0);
  return ReturnKey(arguments, ImportPublicKey(der.data, der.size));
}

napi_value ExportSecret(const Arguments& arguments) {
  KeyPtr key = FindKey(arguments.Key(0));
  if (key == nullptr) Fail(arguments.env(), BadKey());
  if (!Row(key->description.kind).secret || key->description.kind == KeyKind::kKek) Fail(arguments.env(), WrongKeyType());
  const SecureBuffer value = arguments.Unwrap(ExportKey(key));
  return arguments.ReturnBuffer(value.data(), value.size());
}
napi_value ExportPrivate(const Arguments& arguments) {
  KeyPtr key = FindKey(arguments.Key(0));
  if (key == nullptr) Fail(arguments.env(), BadKey());
  if (!Row(key->description.kind).is_private) Fail(arguments.env(), WrongKeyType());
  const SecureBuffer value = arguments.Unwrap(ExportKey(key));
  return arguments.ReturnBuffer(value.data(), value.size());
}
napi_value ExportPublic(const Arguments& arguments) { return arguments.ReturnBuffer(arguments.Unwrap(ExportPublicKey(arguments.Key(0)))); }
napi_value Check(const Arguments& arguments) { return arguments.ReturnBuffer(arguments.Unwrap(CheckValue(arguments.Key(0)))); }

napi_value Describe(const Arguments& arguments) {
  const KeyDescription description = arguments.Unwrap(DescribeKey(arguments.Key(0)));
  napi_value object = arguments.NewObject();
  arguments.Set(object, "kind", arguments.ReturnText(Row(description.kind).name));
  arguments.Set(object, "bits", arguments.ReturnNumber(description.bits));
  if (description.curve != nullptr) arguments.Set(object, "curve", arguments.ReturnText(description.curve->name));
  return object;
}

napi_value Release(const Arguments& arguments) {
  ReleaseKey(arguments.Key(0));
  return nullptr;
}

// The value of a key that is HKDF's salt. A copy, so that two keys are never locked at once.
SecureBuffer SaltOf(const Arguments& arguments, size_t index) {
  KeyPtr key = FindKey(arguments.Key(index));
  if (key == nullptr) Fail(arguments.env(), BadKey());
  if (!Row(key->description.kind).secret || key->description.kind == KeyKind::kKek) Fail(arguments.env(), WrongKeyType());
  return arguments.Unwrap(ExportKey(key));
}

napi_value Hkdf(const Arguments& arguments) {
  const KeyRef key = arguments.Key(0);
  const Digest digest = arguments.ReadDigest(1);
  SecureBuffer salt_value;
  Bytes salt;
  if (arguments.is_number(2)) {
    salt_value = SaltOf(arguments, 2);
    salt = {salt_value.data(), salt_value.size()};
  } else {
    salt = arguments.ReadBytes(2);
  }
  const Bytes info = arguments.ReadBytes(3);
  const KeyKind kind = arguments.ReadKeyKind(4);
  const size_t bytes = static_cast<size_t>(arguments.Integer(5, 0, 4096));
  HkdfSteps steps = HkdfSteps::kBoth;
  if (arguments.has(6)) {
    const std::string name = arguments.Text(6);
    if (name != "both" && name != "extract" && name != "expand") arguments.Refuse("the steps of HKDF are 'both', 'extract' or 'expand'");
    steps = name == "both" ? HkdfSteps::kBoth : name == "extract" ? HkdfSteps::kExtract : HkdfSteps::kExpand;
  }
  return ReturnKey(arguments, HkdfKey(key, digest, salt.data, salt.size, info.data, info.size, kind, bytes, steps));
}

napi_value Login(const Arguments& arguments) {
  const Bytes session = arguments.ReadBytes(1);
  const Bytes pin = arguments.ReadBytes(2);
  unsigned long handle = 0;
  if (session.size != sizeof handle) arguments.Refuse("a session is a number of the machine's width");
  memcpy(&handle, session.data, sizeof handle);
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(LoginToken(arguments.Text(0), handle, pin.data, pin.size))));
}

napi_value Scrypt(const Arguments& arguments) {
  const Bytes passphrase = arguments.ReadBytes(0);
  const Bytes salt = arguments.ReadBytes(1);
  const auto number = [&](size_t index, double most) { return static_cast<uint32_t>(arguments.Integer(index, 1, most)); };
  return ReturnLoose(arguments, ScryptKey(passphrase.data, passphrase.size, salt.data, salt.size, number(2, 24), number(3, 64), number(4, 16)));
}

napi_value ScryptLater(const Arguments& arguments) {
  const Bytes passphrase = arguments.ReadBytes(0);
  const Bytes salt = arguments.ReadBytes(1);
  const auto number = [&](size_t index, double most) { return static_cast<uint32_t>(arguments.Integer(index, 1, most)); };
  const uint32_t cost = number(2, 24), r = number(3, 64), p = number(4, 16);
  auto secret = arguments.Unwrap(SecureBuffer::CopyOf(passphrase.data, passphrase.size));
  return RunLater<LooseKey>(
      arguments,
      [secret = std::move(secret), salt = std::vector<uint8_t>(salt.data, salt.data + salt.size), cost, r, p](const std::atomic<bool>&) {
        return ScryptKey(secret.data(), secret.size(), salt.data(), salt.size(), cost, r, p);
      },
      FinishKey);
}

napi_value Argon2idLater(const Arguments& arguments) {
  const Bytes password = arguments.ReadBytes(0);
  const Bytes salt = arguments.ReadBytes(1);
  const auto memory = static_cast<uint32_t>(arguments.Integer(2, 8, 1 << 20));
  const auto passes = static_cast<uint32_t>(arguments.Integer(3, 1, 100));
  const auto length = static_cast<size_t>(arguments.Integer(4, 16, 64));
  auto secret = arguments.Unwrap(SecureBuffer::CopyOf(password.data, password.size));
  return RunLater<SecureBuffer>(
      arguments,
      [secret = std::move(secret), salt = std::vector<uint8_t>(salt.data, salt.data + salt.size), memory, passes,
       length](const std::atomic<bool>&) {
        GoBehindOthers();
        return Argon2id(secret.data(), secret.size(), salt.data(), salt.size(), memory, passes, length);
      },
      FinishSecret);
}

napi_value BlockKey(const Arguments& arguments) {
  napi_value object = arguments.at(2);
  const auto place = [&](const char* name) -> std::optional<size_t> {
    napi_value at = arguments.Member(object, name);
    if (at == nullptr) return std::nullopt;
    return static_cast<size_t>(arguments.IntegerOf(at, 0, int64_t{kMostSp800108}));
  };
  const Bytes data = arguments.BytesOf(arguments.Member(object, "data"));
  const Bytes iv = arguments.BytesOf(arguments.Member(object, "iv"));
  Sp800108 parameters;
  parameters.data = data.data;
  parameters.length = data.size;
  parameters.iv = iv.data;
  parameters.iv_length = iv.size;
  parameters.counter_at = place("counterAt");
  parameters.previous_at = place("previousAt");
  parameters.counter_bytes = static_cast<size_t>(arguments.IntegerOf(arguments.Member(object, "counterBytes"), 0, 4));
  parameters.little_endian = arguments.BooleanOf(arguments.Member(object, "littleEndian"));
  parameters.counter_first = arguments.BooleanOf(arguments.Member(object, "counterFirst"));
  const size_t bytes = static_cast<size_t>(arguments.Integer(4, 0, 4096));
  return ReturnKey(arguments, Sp800108Key(arguments.Key(0), MacOf(arguments, arguments.at(1)), parameters, arguments.ReadKeyKind(3), bytes));
}

napi_value EncryptedKey(const Arguments& arguments) {
  const CipherParameters parameters = ReadCipher(arguments, 1);
  const Bytes data = arguments.ReadBytes(2);
  const size_t bytes = static_cast<size_t>(arguments.Integer(4, 0, 4096));
  return ReturnKey(arguments,
                   DeriveByEncryption(arguments.Key(0), parameters, data.data, data.size, arguments.ReadKeyKind(3), bytes));
}

napi_value Agree(const Arguments& arguments) {
  const Bytes peer = arguments.ReadBytes(1);
  EcdhDerivation derivation;
  if (arguments.has(2)) {
    napi_value options = arguments.at(2);
    derivation.kind = arguments.KeyKindOf(arguments.Member(options, "kind"));
    derivation.bytes = static_cast<size_t>(arguments.IntegerOf(arguments.Member(options, "bytes"), 1, 4096));
    if (napi_value kdf = arguments.Member(options, "kdf")) {
      const Bytes info = arguments.BytesOf(arguments.Member(options, "sharedInfo"));
      derivation.kdf = arguments.DigestOf(kdf);
      derivation.shared_info = info.data;
      derivation.shared_info_length = info.size;
    }
  }
  return ReturnKey(arguments, EcdhKey(arguments.Key(0), peer.data, peer.size, derivation));
}

napi_value RsaLater(const Arguments& arguments) {
  const int bits = static_cast<int>(arguments.Integer(0, 0, 1 << 16));
  return RunLater<LooseKey>(
      arguments,
      [bits](const std::atomic<bool>& ending) -> Result<LooseKey> {
        Result<EvpPkeyPtr> pkey = FindRsa(bits, &ending);
        if (!pkey.ok()) return pkey.status();
        return LooseKey{KeyKind::kGeneric, {}, pkey.Take()};
      },
      FinishKey);
}

napi_value ImportPrivateLater(const Arguments& arguments) {
  const Bytes der = arguments.ReadBytes(0);
  if (der.size > kMostEncodedKey) arguments.Refuse("not a PKCS#8 private key");
  auto copy = arguments.Unwrap(SecureBuffer::CopyOf(der.data, der.size));
  return RunLater<LooseKey>(
      arguments,
      [value = std::move(copy)](const std::atomic<bool>&) -> Result<LooseKey> {
        Result<EvpPkeyPtr> pkey = OpenPrivateKey(value.data(), value.size());
        if (!pkey.ok()) return pkey.status();
        return LooseKey{KeyKind::kGeneric, {}, pkey.Take()};
      },
      FinishKey);
}

// Modulus, public exponent, private exponent and the two primes; without bytes where one is not
// known.
napi_value ImportRsaLater(const Arguments& arguments) {
  constexpr size_t kMostNumber = 1024;
  std::vector<SecureBuffer> numbers;
  for (size_t i = 0; i < 5; ++i) {
    const Bytes number = arguments.ReadBytes(i);
    if (number.size > kMostNumber) arguments.Refuse("not a number of an RSA key");
    numbers.push_back(arguments.Unwrap(SecureBuffer::CopyOf(number.data, number.size)));
  }
  return RunLater<LooseKey>(
      arguments,
      [numbers = std::move(numbers)](const std::atomic<bool>&) -> Result<LooseKey> {
        const auto number = [&numbers](size_t i) { return RsaNumber{numbers[i].data(), numbers[i].size()}; };
        Result<EvpPkeyPtr> pkey = CompleteRsaKey({number(0), number(1), number(2), number(3), number(4)});
        if (!pkey.ok()) return pkey.status();
        return LooseKey{KeyKind::kGeneric, {}, pkey.Take()};
      },
      FinishKey);
}

// Arguments: the wrapping key, WrapParameters, the key.
Result<std::vector<uint8_t>> WrapBy(const Arguments& arguments) {
  const KeyRef wrapping = arguments.Key(0);
  const KeyRef key = arguments.Key(2);
  const Wrapping by = WrappingOf(arguments, arguments.at(1));
  switch (by.way) {
    case WrapWay::kKeyWrap:
      return WrapKey(wrapping, key, KeyWrapOf(arguments, by.parameters));
    case WrapWay::kCipher:
      return WrapKeyCipher(wrapping, CipherOf(arguments, by.parameters), key);
    case WrapWay::kOaep:
      break;
  }
  return WrapKeyOaep(wrapping, RsaEncryptionOf(arguments, by.parameters), key);
}
// Arguments: the wrapping key, WrapParameters, the wrapped key, its kind, its length.
Result<SecureBuffer> UnwrapBy(const Arguments& arguments, const Wrapping& by, UnwrappedKind kind) {
  const KeyRef wrapping = arguments.Key(0);
  const Bytes wrapped = arguments.ReadBytes(2);
  const size_t bytes = ReadUnwrappedLength(arguments, 4);
  switch (by.way) {
    case WrapWay::kKeyWrap:
      return UnwrapValue(wrapping, wrapped.data, wrapped.size, KeyWrapOf(arguments, by.parameters), kind, bytes);
    case WrapWay::kCipher:
      return UnwrapCipherValue(wrapping, CipherOf(arguments, by.parameters), wrapped.data, wrapped.size, kind, bytes);
    case WrapWay::kOaep:
      break;
  }
  return RsaDecrypt(wrapping, RsaEncryptionOf(arguments, by.parameters), wrapped.data, wrapped.size);
}

napi_value Wrap(const Arguments& arguments) { return arguments.ReturnBuffer(arguments.Unwrap(WrapBy(arguments))); }
napi_value Unwrap(const Arguments& arguments) {
  const UnwrappedKind kind = ReadUnwrapped(arguments, 3);
  return ReturnLoose(arguments, OpenUnwrapped(arguments.Unwrap(UnwrapBy(arguments, WrappingOf(arguments, arguments.at(1)), kind)), kind));
}
// The value is unwrapped here, where its wrapping key may be used, and a job checks its content. A
// private key unwraps in the job.
napi_value UnwrapLater(const Arguments& arguments) {
  const UnwrappedKind kind = ReadUnwrapped(arguments, 3);
  const Wrapping by = WrappingOf(arguments, arguments.at(1));
  if (by.way == WrapWay::kOaep) {
    return RunLater<LooseKey>(
        arguments,
        [job = RsaDecryptionJob(arguments, by.parameters), kind](const std::atomic<bool>&) -> Result<LooseKey> {
          Result<SecureBuffer> value = job.Decrypt();
          if (!value.ok()) return value.status();
          return OpenUnwrapped(value.Take(), kind);
        },
        FinishKey);
  }
  return RunLater<LooseKey>(
      arguments,
      [value = arguments.Unwrap(UnwrapBy(arguments, by, kind)), kind](const std::atomic<bool>&) mutable {
        return OpenUnwrapped(std::move(value), kind);
      },
      FinishKey);
}
napi_value WrapBytes(const Arguments& arguments) {
  const Bytes data = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(WrapData(arguments.Key(0), data.data, data.size, KeyWrapOf(arguments, arguments.at(1)))));
}
napi_value UnwrapBytes(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(2);
  const SecureBuffer value = arguments.Unwrap(UnwrapData(arguments.Key(0), wrapped.data, wrapped.size, KeyWrapOf(arguments, arguments.at(1))));
  return arguments.ReturnBuffer(value.data(), value.size());
}

}  // namespace

void RegisterKeys(Napi::Env env, Napi::Object exports) {
  Define<Initialize>(env, exports, "initialize");
  Define<MemoryObject>(env, exports, "memoryStatus");
  Define<WipeBuffer>(env, exports, "wipe");
  Define<Random>(env, exports, "random");
  Define<MakeIvOwner>(env, exports, "newIvOwner");
  Define<EndOwner>(env, exports, "endIvOwner");
  Define<UseIv<IvUsed>>(env, exports, "ivUsed");
  Define<UseIv<ClaimIv>>(env, exports, "claimIv");
  Define<TimingSafeEqual>(env, exports, "timingSafeEqual");
  Define<Aes>(env, exports, "generateAes");
  Define<Generic>(env, exports, "generateGeneric");
  Define<Kek>(env, exports, "generateKek");
  Define<Rsa>(env, exports, "generateRsa");
  Define<RsaLater>(env, exports, "generateRsaLater");
  Define<Ec>(env, exports, "generateEc");
  Define<Import>(env, exports, "importSecret");
  Define<ImportPrivate>(env, exports, "importPrivateKey");
  Define<ImportPrivateLater>(env, exports, "importPrivateKeyLater");
  Define<ImportRsaLater>(env, exports, "importRsaNumbersLater");
  Define<ImportPublic>(env, exports, "importPublicKey");
  Define<ExportSecret>(env, exports, "exportSecret");
  Define<ExportPrivate>(env, exports, "exportPrivateKey");
  Define<ExportPublic>(env, exports, "exportPublicKey");
  Define<Describe>(env, exports, "describe");
  Define<Check>(env, exports, "checkValue");
  Define<Release>(env, exports, "release");
  Define<Hkdf>(env, exports, "hkdf");
  Define<Scrypt>(env, exports, "scryptKek");
  Define<ScryptLater>(env, exports, "scryptKekLater");
  Define<Argon2idLater>(env, exports, "argon2idLater");
  Define<Login>(env, exports, "loginToken");
  Define<EncryptedKey>(env, exports, "deriveByEncryption");
  Define<BlockKey>(env, exports, "sp800108");
  Define<Agree>(env, exports, "ecdh");
  Define<Wrap>(env, exports, "wrapKey");
  Define<Unwrap>(env, exports, "unwrapKey");
  Define<UnwrapLater>(env, exports, "unwrapKeyLater");
  Define<WrapBytes>(env, exports, "wrapData");
  Define<UnwrapBytes>(env, exports, "unwrapData");
}

}  // namespace dke
