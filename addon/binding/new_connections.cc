// Listening sockets at their end (Core in open-core.ts: `holdNewConnections`).
#include "../core/base/new_connections.h"

#include "arguments.h"

namespace dke {

namespace {

napi_value Hold(const Arguments& arguments) {
  return arguments.ReturnBoolean(HoldNewConnections(static_cast<int>(arguments.Integer(0, 0, INT32_MAX))));
}

}  // namespace

void RegisterNewConnections(Napi::Env env, Napi::Object exports) { Define<Hold>(env, exports, "holdNewConnections"); }

}  // namespace dke
