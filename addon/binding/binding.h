// What the binding's files share: one registration function a file, and how a failure becomes a
// CoreError.
//
// This folder is the only one that knows Node. It checks arguments and converts values; decisions
// are in ../core and in TypeScript.
#pragma once

#include <napi.h>

#include <memory>
#include <string>

namespace dke {

// State of one Node environment (the main thread and each worker have their own). When it ends,
// everything that its thread has created and not released goes with it.
class Jobs;
struct UserFileDesk;
struct Environment {
  Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();
  Napi::FunctionReference error_class;
  std::unique_ptr<Jobs> jobs;
  std::shared_ptr<UserFileDesk> user_files;
};

// Drops the parsed request bodies of this thread.
void ReleaseBodies();

// Throws the CoreError that open-core.ts registered, with one of its codes. The message contains no
// data.
[[noreturn]] void Fail(Napi::Env env, const char* code, const std::string& message);

void RegisterErrors(Napi::Env env, Napi::Object exports);
void RegisterKeys(Napi::Env env, Napi::Object exports);
void RegisterCiphers(Napi::Env env, Napi::Object exports);
void RegisterSignatures(Napi::Env env, Napi::Object exports);
void RegisterHpke(Napi::Env env, Napi::Object exports);
void RegisterRecords(Napi::Env env, Napi::Object exports);
void RegisterXks(Napi::Env env, Napi::Object exports);
void RegisterFrameServer(Napi::Env env, Napi::Object exports);
void RegisterUserFiles(Napi::Env env, Napi::Object exports);
void RegisterProcessEnd(Napi::Env env, Napi::Object exports);
void RegisterFreeMemory(Napi::Env env, Napi::Object exports);
void RegisterNewConnections(Napi::Env env, Napi::Object exports);
void RegisterServiceManager(Napi::Env env, Napi::Object exports);

}  // namespace dke
