// The module's entry: one environment's state, and every file's functions.
#include "binding.h"

namespace {

Napi::Object Initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new dke::Environment);
  dke::RegisterErrors(env, exports);
  dke::RegisterFrameServer(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(dke_core, Initialize)
