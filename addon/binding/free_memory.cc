// Freed memory that goes back to the system (Core in open-core.ts: `returnFreeMemory`).
#include "../core/base/free_memory.h"

#include "arguments.h"
#include "jobs.h"

namespace dke {

namespace {

napi_value Boolean(napi_env env, bool value) {
  napi_value result;
  if (napi_get_boolean(env, value, &result) != napi_ok) Fail(env, "internal", "no boolean");
  return result;
}

napi_value ReturnLater(const Arguments& arguments) {
  return RunLater<bool>(arguments, [](const std::atomic<bool>&) { return Result<bool>(ReturnFreeMemory()); }, Boolean);
}

}  // namespace

void RegisterFreeMemory(Napi::Env env, Napi::Object exports) { Define<ReturnLater>(env, exports, "returnFreeMemory"); }

}  // namespace dke
