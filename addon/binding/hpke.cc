// Keys on their way to another host (Core in open-core.ts: "HPKE").
#include "../core/wrapping/hpke.h"

#include "arguments.h"
#include "jobs.h"

namespace dke {
namespace {

HpkeContext ReadContext(const Arguments& arguments, size_t info_index) {
  const Bytes info = arguments.ReadBytes(info_index);
  const Bytes aad = arguments.ReadBytes(info_index + 1);
  return {info.data, info.size, aad.data, aad.size};
}

napi_value Generate(const Arguments& arguments) {
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(GenerateHpkeKey())));
}

napi_value Derive(const Arguments& arguments) {
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(DeriveHpkeKey(arguments.Key(0)))));
}

napi_value PublicKey(const Arguments& arguments) { return arguments.ReturnBuffer(arguments.Unwrap(HpkePublicKey(arguments.Key(0)))); }

napi_value Seal(const Arguments& arguments) {
  const Bytes recipient = arguments.ReadBytes(0);
  return arguments.ReturnBuffer(
      arguments.Unwrap(HpkeSealKey(recipient.data, recipient.size, ReadContext(arguments, 1), arguments.Key(3))));
}

napi_value Open(const Arguments& arguments) {
  const Bytes sealed = arguments.ReadBytes(3);
  LooseKey key = arguments.Unwrap(
      HpkeOpenKey(arguments.Key(0), ReadContext(arguments, 1), sealed.data, sealed.size, ReadUnwrapped(arguments, 4)));
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(AddKey(std::move(key)))));
}

// Opened here; a job checks its content.
napi_value OpenLater(const Arguments& arguments) {
  const Bytes sealed = arguments.ReadBytes(3);
  auto opened = arguments.Unwrap(HpkeOpen(arguments.Key(0), ReadContext(arguments, 1), sealed.data, sealed.size));
  return RunLater<LooseKey>(
      arguments,
      [value = std::move(opened), kind = ReadUnwrapped(arguments, 4)](const std::atomic<bool>&) mutable {
        return HpkeOpened(std::move(value), kind);
      },
      FinishKey);
}

napi_value SealKek(const Arguments& arguments) {
  const Bytes recipient = arguments.ReadBytes(0);
  return arguments.ReturnBuffer(
      arguments.Unwrap(HpkeSealKek(recipient.data, recipient.size, ReadContext(arguments, 1), arguments.Key(3))));
}

napi_value OpenKek(const Arguments& arguments) {
  const Bytes sealed = arguments.ReadBytes(3);
  const KeyRef key = arguments.Unwrap(HpkeOpenKek(arguments.Key(0), ReadContext(arguments, 1), sealed.data, sealed.size));
  return arguments.ReturnNumber(static_cast<double>(key));
}

}  // namespace

void RegisterHpke(Napi::Env env, Napi::Object exports) {
  Define<Generate>(env, exports, "generateHpkeKey");
  Define<Derive>(env, exports, "deriveHpkeKey");
  Define<PublicKey>(env, exports, "hpkePublicKey");
  Define<Seal>(env, exports, "hpkeSealKey");
  Define<Open>(env, exports, "hpkeOpenKey");
  Define<OpenLater>(env, exports, "hpkeOpenKeyLater");
  Define<SealKek>(env, exports, "hpkeSealKek");
  Define<OpenKek>(env, exports, "hpkeOpenKek");
}

}  // namespace dke
