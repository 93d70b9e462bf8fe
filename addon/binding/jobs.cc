#include "jobs.h"

#include <sys/resource.h>

#include <csignal>
#include <system_error>

namespace dke {

struct Jobs::Running {
  Jobs* jobs = nullptr;
  std::unique_ptr<Job> job;
  napi_deferred deferred = nullptr;
  std::thread thread;
  bool settled = false;
};

Jobs::Jobs() = default;
Jobs::~Jobs() = default;

void Jobs::Open(napi_env env) {
  if (done_ != nullptr) return;
  napi_value name;
  // Hooks run in the reverse order: `End` has waited for every thread before Node frees what they
  // call.
  if (napi_create_string_utf8(env, "dke job", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, nullptr, Settle, &done_) != napi_ok ||
      napi_unref_threadsafe_function(env, done_) != napi_ok || napi_add_env_cleanup_hook(env, End, this) != napi_ok) {
    Fail(env, "internal", "no job can be started");
  }
}

void Jobs::End(void* data) {
  auto* const jobs = static_cast<Jobs*>(data);
  jobs->ending_.store(true, std::memory_order_relaxed);
  for (const auto& running : jobs->running_) running->thread.join();
  jobs->running_.clear();
}

// The threads of those that have settled have nothing left to do: this does not wait.
void Jobs::JoinSettled() {
  for (auto entry = running_.begin(); entry != running_.end();) {
    if ((*entry)->settled) {
      (*entry)->thread.join();
      entry = running_.erase(entry);
    } else {
      ++entry;
    }
  }
}

napi_value Jobs::Start(napi_env env, std::unique_ptr<Job> job) {
  Open(env);
  JoinSettled();
  auto owned = std::make_unique<Running>();
  Running* const running = owned.get();
  running->jobs = this;
  running->job = std::move(job);
  // Signals are for the other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    running->thread = std::thread([running] {
      running->job->Run(running->jobs->ending_);
      (void)napi_call_threadsafe_function(running->jobs->done_, running, napi_tsfn_nonblocking);
    });
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) Fail(env, "internal", "no thread for a job: raise the limit of processes and threads");
  running_.push_back(std::move(owned));
  if (unsettled_++ == 0) napi_ref_threadsafe_function(env, done_);
  napi_value promise;
  // Settle runs on this thread, so not before this.
  if (napi_create_promise(env, &running->deferred, &promise) != napi_ok) Fail(env, "internal", "no promise of a job");
  return promise;
}

void Jobs::Settle(napi_env env, napi_value, void*, void* data) {
  // The environment has ended, and so has what `data` points to.
  if (env == nullptr) return;
  auto* const running = static_cast<Running*>(data);
  Jobs& jobs = *running->jobs;
  napi_handle_scope scope;
  const bool scoped = napi_open_handle_scope(env, &scope) == napi_ok;
  try {
    const napi_value value = running->job->Finish(env);
    napi_resolve_deferred(env, running->deferred, value);
  } catch (const Napi::Error& error) {
    napi_reject_deferred(env, running->deferred, error.Value());
  } catch (const std::bad_alloc&) {
    napi_reject_deferred(env, running->deferred, Napi::Error::New(env, "out of memory").Value());
  }
  if (scoped) napi_close_handle_scope(env, scope);
  // Wipes and frees the job's data now.
  running->job.reset();
  running->settled = true;
  if (--jobs.unsettled_ == 0) napi_unref_threadsafe_function(env, jobs.done_);
}

// On Linux a priority is a thread's: 0 is the one that calls.
void GoBehindOthers() { (void)setpriority(PRIO_PROCESS, 0, 10); }

Jobs& JobsOf(napi_env env) { return *Napi::Env(env).GetInstanceData<Environment>()->jobs; }

napi_value FinishKey(napi_env env, LooseKey key) {
  Result<KeyRef> added = AddKey(std::move(key));
  if (!added.ok()) Fail(env, added.status());
  return Napi::Number::New(env, static_cast<double>(added.value()));
}

napi_value FinishBytes(napi_env env, std::vector<uint8_t> bytes) {
  return Napi::Buffer<uint8_t>::Copy(env, bytes.data(), bytes.size());
}

napi_value FinishSecret(napi_env env, SecureBuffer bytes) { return Napi::Buffer<uint8_t>::Copy(env, bytes.data(), bytes.size()); }

}  // namespace dke
