// The end of the process at a set time (Core in open-core.ts: `endProcessIn`).
#include "../core/base/process_end.h"

#include "arguments.h"

namespace dke {

namespace {

napi_value EndIn(const Arguments& arguments) {
  const auto milliseconds = static_cast<uint32_t>(arguments.Integer(0, 0, UINT32_MAX));
  return arguments.ReturnBoolean(EndProcessIn(milliseconds, static_cast<int>(arguments.Integer(1, 0, 255))));
}

}  // namespace

void RegisterProcessEnd(Napi::Env env, Napi::Object exports) { Define<EndIn>(env, exports, "endProcessIn"); }

}  // namespace dke
