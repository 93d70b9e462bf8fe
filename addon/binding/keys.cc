// Memory, random bytes and keys (Core in core.ts: "memory", "keys", "key wrap").
#include <openssl/crypto.h>

#include "../core/agreement.h"
#include "../core/kdf.h"
#include "../core/key_wrap.h"
#include "../core/random.h"
#include "../core/secure_buffer.h"
#include "arguments.h"

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

napi_value Hkdf(const Arguments& arguments) {
  const KeyRef key = arguments.Key(0);
  const Digest digest = arguments.ReadDigest(1);
  const Bytes salt = arguments.ReadBytes(2);
  const Bytes info = arguments.ReadBytes(3);
  const KeyKind kind = arguments.ReadKeyKind(4);
  const size_t bytes = static_cast<size_t>(arguments.Integer(5, 0, 4096));
  return ReturnKey(arguments, HkdfKey(key, digest, salt.data, salt.size, info.data, info.size, kind, bytes));
}

napi_value EcdhKey(const Arguments& arguments) {
  const Bytes peer = arguments.ReadBytes(1);
  return ReturnKey(arguments, Ecdh(arguments.Key(0), peer.data, peer.size));
}

napi_value Wrap(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(WrapKey(arguments.Key(0), arguments.Key(1), arguments.Boolean(2))));
}
napi_value Unwrap(const Arguments& arguments) {
  const Bytes wrapped = arguments.ReadBytes(1);
  return ReturnKey(arguments,
                   UnwrapKey(arguments.Key(0), wrapped.data, wrapped.size, arguments.Boolean(2), arguments.ReadKeyKind(3)));
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
  Define<TimingSafeEqual>(env, exports, "timingSafeEqual");
  Define<Aes>(env, exports, "generateAes");
  Define<Generic>(env, exports, "generateGeneric");
  Define<Kek>(env, exports, "generateKek");
  Define<Rsa>(env, exports, "generateRsa");
  Define<Ec>(env, exports, "generateEc");
  Define<Ed25519>(env, exports, "generateEd25519");
  Define<Import>(env, exports, "importSecret");
  Define<ImportPrivate>(env, exports, "importPrivateKey");
  Define<ImportPublic>(env, exports, "importPublicKey");
  Define<ExportSecret>(env, exports, "exportSecret");
  Define<ExportPublic>(env, exports, "exportPublicKey");
  Define<Describe>(env, exports, "describe");
  Define<Check>(env, exports, "checkValue");
  Define<Release>(env, exports, "release");
  Define<Hkdf>(env, exports, "hkdf");
  Define<EcdhKey>(env, exports, "ecdh");
  Define<Wrap>(env, exports, "wrapKey");
  Define<Unwrap>(env, exports, "unwrapKey");
  Define<WrapBytes>(env, exports, "wrapData");
  Define<UnwrapBytes>(env, exports, "unwrapData");
}

}  // namespace dke
