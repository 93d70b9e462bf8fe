// What a service tells systemd (Core in open-core.ts: `tellServiceManager`).
#include "../core/base/service_manager.h"

#include "arguments.h"

namespace dke {

namespace {

napi_value Tell(const Arguments& arguments) {
  return arguments.ReturnBoolean(TellServiceManager(arguments.Text(0), arguments.Text(1)));
}

}  // namespace

void RegisterServiceManager(Napi::Env env, Napi::Object exports) { Define<Tell>(env, exports, "tellServiceManager"); }

}  // namespace dke
