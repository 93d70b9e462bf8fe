// Files of local users (Core in open-core.ts: `readUserFile`). Each is read on a thread of its own
// that no one waits for: it may hang in a file system of its user without end. So these differ from
// jobs (jobs.h): an environment that ends leaves them alone. How many there are for each user is
// decided by the caller (provider/agent/settings/user-files.ts).
#include "../core/base/user_files.h"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "arguments.h"

namespace dke {

// What threads and their environment share. The environment takes its end of it away when it ends:
// a thread that comes back later finds no one to tell.
struct UserFileDesk {
  std::mutex mutex;
  napi_threadsafe_function done = nullptr;
  size_t running = 0;  // of the environment's thread alone
};

namespace {

struct Reading {
  std::shared_ptr<UserFileDesk> desk;
  UserFileRequest request;
  UserFile result;
  napi_deferred deferred = nullptr;
};

void WipeBytes(Reading* reading) {
  auto& bytes = reading->result.bytes;
  if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

void* Read(void* data) {
  std::unique_ptr<Reading> reading(static_cast<Reading*>(data));
  reading->result = ReadUserFile(reading->request);
  const std::shared_ptr<UserFileDesk> desk = reading->desk;
  const std::lock_guard lock(desk->mutex);
  if (desk->done != nullptr && napi_call_threadsafe_function(desk->done, reading.get(), napi_tsfn_nonblocking) == napi_ok) {
    (void)reading.release();
  } else {
    WipeBytes(reading.get());
  }
  return nullptr;
}

napi_value Describe(Napi::Env env, const UserFile& file) {
  const auto object = Napi::Object::New(env);
  object.Set("error", file.error);
  object.Set("identity", file.identity);
  if (file.error != 0) return object;
  object.Set("regular", file.regular);
  object.Set("uid", file.uid);
  object.Set("mode", file.mode);
  object.Set("size", static_cast<double>(file.size));
  object.Set("state", file.state);
  if (file.read) object.Set("bytes", Napi::Buffer<uint8_t>::Copy(env, file.bytes.data(), file.bytes.size()));
  return object;
}

void Settle(napi_env env, napi_value, void*, void* data) {
  const std::unique_ptr<Reading> reading(static_cast<Reading*>(data));
  if (env != nullptr) {
    const Napi::HandleScope scope(env);
    try {
      napi_resolve_deferred(env, reading->deferred, Describe(env, reading->result));
    } catch (const Napi::Error& error) {
      napi_reject_deferred(env, reading->deferred, error.Value());
    }
    UserFileDesk& desk = *reading->desk;
    if (--desk.running == 0 && desk.done != nullptr) napi_unref_threadsafe_function(env, desk.done);
  }
  WipeBytes(reading.get());
}

void End(void* data) {
  auto& desk = *static_cast<UserFileDesk*>(data);
  const std::lock_guard lock(desk.mutex);
  desk.done = nullptr;
}

std::shared_ptr<UserFileDesk> DeskOf(napi_env env) {
  auto& desk = Napi::Env(env).GetInstanceData<Environment>()->user_files;
  if (desk != nullptr) return desk;
  auto made = std::make_shared<UserFileDesk>();
  napi_value name;
  // Hooks run in the reverse order: `End` comes before Node frees what threads call.
  if (napi_create_string_utf8(env, "dke user file", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, nullptr, Settle, &made->done) != napi_ok ||
      napi_unref_threadsafe_function(env, made->done) != napi_ok || napi_add_env_cleanup_hook(env, End, made.get()) != napi_ok) {
    Fail(env, "internal", "no file of a user can be read");
  }
  return desk = std::move(made);
}

// Signals are for the other threads.
bool StartThread(Reading* reading) {
  constexpr size_t kStack = 128 * 1024;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, kStack) == 0 &&
                       pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                       pthread_create(&thread, &attributes, Read, reading) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

UserFileRequest ReadRequest(const Arguments& arguments) {
  const napi_value object = arguments.at(0);
  const auto number = [&](const char* name) {
    return static_cast<uint32_t>(arguments.IntegerOf(arguments.Member(object, name), 0, UINT32_MAX));
  };
  UserFileRequest request;
  request.user.uid = number("uid");
  request.user.gid = number("gid");
  const Napi::Env env(arguments.env());
  const Napi::Value groups(env, arguments.Member(object, "groups"));
  if (!groups.IsArray()) arguments.Refuse("groups are a list");
  const auto list = groups.As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Value group = list.Get(i);
    request.user.groups.push_back(static_cast<uint32_t>(arguments.IntegerOf(group, 0, UINT32_MAX)));
  }
  request.path = arguments.TextOf(arguments.Member(object, "path"));
  request.follow = arguments.BooleanOf(arguments.Member(object, "follow"));
  request.most = number("most");
  request.known = arguments.TextOf(arguments.Member(object, "known"));
  return request;
}

napi_value ReadFileOfUser(const Arguments& arguments) {
  const napi_env env = arguments.env();
  auto reading = std::make_unique<Reading>();
  reading->request = ReadRequest(arguments);
  reading->desk = DeskOf(env);
  UserFileDesk& desk = *reading->desk;
  napi_value promise;
  if (napi_create_promise(env, &reading->deferred, &promise) != napi_ok) Fail(env, "internal", "no promise of a file");
  if (!StartThread(reading.get())) Fail(env, "internal", "no thread for a file: raise the limit of processes and threads");
  // The thread's from here on.
  (void)reading.release();
  if (desk.running++ == 0) napi_ref_threadsafe_function(env, desk.done);
  return promise;
}

}  // namespace

void RegisterUserFiles(Napi::Env env, Napi::Object exports) { Define<ReadFileOfUser>(env, exports, "readUserFile"); }

}  // namespace dke
