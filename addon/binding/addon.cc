// The module's entry: one environment's state, and every file's functions.
#include "../core/keys/key_table.h"
#include "../core/keys/operation_table.h"
#include "../core/base/secure_buffer.h"
#include "binding.h"
#include "jobs.h"

#include <openssl/crypto.h>

dke::Environment::Environment() : jobs(std::make_unique<Jobs>()) {}

dke::Environment::~Environment() {
  DropOperationsOf(ThisThread());
  ReleaseBodies();
  ReleaseKeysOf(ThisThread());
}

namespace {

// Before libcrypto's first allocation: its key schedules and private numbers belong in memory that
// is wiped and not dumped.
const bool adopted = dke::AdoptCryptoAllocations();

Napi::Value LibcryptoVersion(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), OpenSSL_version(OPENSSL_VERSION_STRING));
}

Napi::Object Initialize(Napi::Env env, Napi::Object exports) {
  if (!adopted) throw Napi::Error::New(env, "libcrypto allocated before the addon could guard its memory");
  env.SetInstanceData(new dke::Environment);
  exports.Set("libcryptoVersion", Napi::Function::New(env, LibcryptoVersion, "libcryptoVersion"));
  dke::RegisterErrors(env, exports);
  dke::RegisterKeys(env, exports);
  dke::RegisterCiphers(env, exports);
  dke::RegisterSignatures(env, exports);
  dke::RegisterHpke(env, exports);
  dke::RegisterRecords(env, exports);
  dke::RegisterXks(env, exports);
  dke::RegisterFrameServer(env, exports);
  dke::RegisterUserFiles(env, exports);
  dke::RegisterProcessEnd(env, exports);
  dke::RegisterFreeMemory(env, exports);
  dke::RegisterNewConnections(env, exports);
  dke::RegisterServiceManager(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(dke_core, Initialize)
