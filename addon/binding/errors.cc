// Failures as JavaScript sees them: CoreError, the class that open-core.ts hands in when it loads
// the addon.
#include "binding.h"

namespace dke {
namespace {

void SetErrorClass(const Napi::CallbackInfo& info) {
  info.Env().GetInstanceData<Environment>()->error_class = Napi::Persistent(info[0].As<Napi::Function>());
}

}  // namespace

void Fail(Napi::Env env, const char* code, const std::string& message) {
  const Napi::FunctionReference& error_class = env.GetInstanceData<Environment>()->error_class;
  if (error_class.IsEmpty()) throw Napi::Error::New(env, message);
  const Napi::Object error = error_class.New({Napi::String::New(env, code), Napi::String::New(env, message)});
  throw Napi::Error(env, error);
}

void RegisterErrors(Napi::Env env, Napi::Object exports) {
  exports.Set("setErrorClass", Napi::Function::New(env, SetErrorClass, "setErrorClass"));
}

}  // namespace dke
