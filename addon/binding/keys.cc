// Memory, random bytes and keys (Core in core.ts: "memory", "keys", "key wrap").
#include <openssl/crypto.h>

#include "../core/agreement.h"
#include "../core/block_cipher.h"
#include "../core/kdf.h"
#include "../core/key_wrap.h"
#include "../core/random.h"
#include "../core/secure_buffer.h"
#include "../core/used_ivs.h"
#include "../core/token_login.h"
#include "arguments.h"
#include "parameters.h"

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
  bool allow_unlocked = false;
  if (arguments.has(0)) {
    if (napi_value size = arguments.Member(arguments.at(0), "arenaBytes")) {
      const double number = arguments.NumberOf(size);
      if (!(number >= 0 && number <= 4294967296.0)) arguments.Refuse("the key arena must have 128 KiB to 4 GiB");
      bytes = static_cast<size_t>(number);
    }
    if (napi_value allow = arguments.Member(arguments.at(0), "allowUnlocked")) allow_unlocked = arguments.BooleanOf(allow);
  }
  (void)arguments.Unwrap(InitializeMemory(bytes, allow_unlocked));
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

napi_value TimingSafeEqual(const Arguments& arguments) {
  const Bytes a = arguments.ReadBytes(0);
  const Bytes b = arguments.ReadBytes(1);
  return arguments.ReturnBoolean(a.size == b.size && CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}

napi_value ReturnKey(const Arguments& arguments, Result<KeyRef> key) {
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(std::move(key))));
}

napi_value Aes(const Arguments& arguments) { return ReturnKey(arguments, GenerateAes(static_cast<int>(arguments.Integer(0, 0, 256)))); }
napi_value Generic(const Arguments& arguments) {
  return ReturnKey(arguments, GenerateSecret(KeyKind::kGeneric, static_cast<size_t>(arguments.Integer(0, 0, 4096))));
}
napi_value Kek(const Arguments& arguments) { return ReturnKey(arguments, GenerateSecret(KeyKind::kKek, 32)); }
napi_value Rsa(const Arguments& arguments) { return ReturnKey(arguments, GenerateRsa(static_cast<int>(arguments.Integer(0, 0, 1 << 16)))); }
napi_value Ed25519(const Arguments& arguments) { return ReturnKey(arguments, GenerateEd25519()); }
napi_value Ec(const Arguments& arguments) {
  const CurveRow* curve = FindCurve(arguments.Text(0));
  if (curve == nullptr) arguments.Refuse("the curve is 'p256', 'p384' or 'p521'");
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

// The value of a key that is HKDF's salt. A copy, so that two keys are never held at once.
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
  return ReturnKey(arguments, ScryptKey(passphrase.data, passphrase.size, salt.data, salt.size, number(2, 24), number(3, 64), number(4, 16)));
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

// An RSA key takes from tenths of a second to seconds to find, so it is looked for on a thread of libuv's pool. The key
// belongs to the thread that asked.
class RsaSearch : public Napi::AsyncWorker {
 public:
  RsaSearch(Napi::Env env, int bits) : Napi::AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), bits_(bits) {}
  Napi::Promise promise() const { return deferred_.Promise(); }

  void Execute() override { pkey_ = FindRsa(bits_); }
  void OnOK() override {
    Result<KeyRef> key = pkey_.ok() ? AddPkey(pkey_.Take(), true) : Result<KeyRef>(pkey_.status());
    if (key.ok()) {
      deferred_.Resolve(Napi::Number::New(Env(), static_cast<double>(key.value())));
      return;
    }
    try {
      Fail(Env(), key.status());
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
  }

 private:
  Napi::Promise::Deferred deferred_;
  const int bits_;
  Result<EvpPkeyPtr> pkey_ = Result<EvpPkeyPtr>(Status(Code::kInternal, "not looked for"));
};

napi_value RsaLater(const Arguments& arguments) {
  auto* search = new RsaSearch(arguments.env(), static_cast<int>(arguments.Integer(0, 0, 1 << 16)));
  const Napi::Promise promise = search->promise();
  search->Queue();
  return promise;
}

napi_value Wrap(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(WrapKey(arguments.Key(0), arguments.Key(1), arguments.Boolean(2))));
}
napi_value Unwrap(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(1);
  return ReturnKey(arguments,
                   UnwrapKey(arguments.Key(0), wrapped.data, wrapped.size, arguments.Boolean(2), ReadUnwrapped(arguments, 3)));
}
napi_value CipherWrap(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(WrapKeyCipher(arguments.Key(0), ReadCipher(arguments, 1), arguments.Key(2))));
}
napi_value CipherUnwrap(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(2);
  return ReturnKey(arguments, UnwrapKeyCipher(arguments.Key(0), ReadCipher(arguments, 1), wrapped.data, wrapped.size,
                                              ReadUnwrapped(arguments, 3)));
}
napi_value OaepWrap(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(WrapKeyOaep(arguments.Key(0), ReadOaep(arguments, 1), arguments.Key(2))));
}
napi_value OaepUnwrap(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(2);
  return ReturnKey(arguments, UnwrapKeyOaep(arguments.Key(0), ReadOaep(arguments, 1), wrapped.data, wrapped.size,
                                            ReadUnwrapped(arguments, 3)));
}
napi_value WrapBytes(const Arguments& arguments) {
  const Bytes data = arguments.ReadBytes(1);
  return arguments.ReturnBuffer(arguments.Unwrap(WrapData(arguments.Key(0), data.data, data.size, arguments.Boolean(2))));
}
napi_value UnwrapBytes(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(1);
  const SecureBuffer value = arguments.Unwrap(UnwrapData(arguments.Key(0), wrapped.data, wrapped.size, arguments.Boolean(2)));
  return arguments.ReturnBuffer(value.data(), value.size());
}

}  // namespace

void RegisterKeys(Napi::Env env, Napi::Object exports) {
  Define<Initialize>(env, exports, "initialize");
  Define<MemoryObject>(env, exports, "memoryStatus");
  Define<WipeBuffer>(env, exports, "wipe");
  Define<Random>(env, exports, "random");
  Define<MakeIvOwner>(env, exports, "newIvOwner");
  Define<UseIv<IvUsed>>(env, exports, "ivUsed");
  Define<UseIv<ClaimIv>>(env, exports, "claimIv");
  Define<TimingSafeEqual>(env, exports, "timingSafeEqual");
  Define<Aes>(env, exports, "generateAes");
  Define<Generic>(env, exports, "generateGeneric");
  Define<Kek>(env, exports, "generateKek");
  Define<Rsa>(env, exports, "generateRsa");
  Define<RsaLater>(env, exports, "generateRsaLater");
  Define<Ec>(env, exports, "generateEc");
  Define<Ed25519>(env, exports, "generateEd25519");
  Define<Import>(env, exports, "importSecret");
  Define<ImportPrivate>(env, exports, "importPrivateKey");
  Define<ImportPublic>(env, exports, "importPublicKey");
  Define<ExportSecret>(env, exports, "exportSecret");
  Define<ExportPrivate>(env, exports, "exportPrivateKey");
  Define<ExportPublic>(env, exports, "exportPublicKey");
  Define<Describe>(env, exports, "describe");
  Define<Check>(env, exports, "checkValue");
  Define<Release>(env, exports, "release");
  Define<Hkdf>(env, exports, "hkdf");
  Define<Scrypt>(env, exports, "scryptKek");
  Define<Login>(env, exports, "loginToken");
  Define<EncryptedKey>(env, exports, "deriveByEncryption");
  Define<Agree>(env, exports, "ecdh");
  Define<Wrap>(env, exports, "wrapKey");
  Define<Unwrap>(env, exports, "unwrapKey");
  Define<CipherWrap>(env, exports, "wrapKeyCipher");
  Define<CipherUnwrap>(env, exports, "unwrapKeyCipher");
  Define<OaepWrap>(env, exports, "wrapKeyOaep");
  Define<OaepUnwrap>(env, exports, "unwrapKeyOaep");
  Define<WrapBytes>(env, exports, "wrapData");
  Define<UnwrapBytes>(env, exports, "unwrapData");
}

}  // namespace dke
