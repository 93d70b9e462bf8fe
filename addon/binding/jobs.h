// Work that takes longer than 5 ms, on a thread of its own, for a promise. The thread that asked
// answers others in the meantime.
//
// The rules that make this safe:
// - A job touches nothing of Node's and nothing of its caller's. Inputs are copied before it
//   starts: secrets into the key arena, whose blocks are wiped when they are freed, on whichever
//   thread.
// - A job locks no mutex of a key while it computes. Of a key of a pair it has a reference of
//   libcrypto's (HoldPkey), so releasing the key never waits for the job. What the job makes of a
//   key that was released in the meantime is the caller's to drop.
// - A key that a job makes belongs to the thread that asked: it enters the table there, when the
//   promise is fulfilled. When that thread has ended, the key is wiped and was never in the table.
// - A Node environment that ends waits for its jobs. A search for primes hears of it and stops; the
//   others take milliseconds.
//
// How many jobs may run, and whose come next, is decided by their callers
// (server/base/fair-queue.ts). Threads of libuv's pool are not used: there are four for the whole
// process, and they also serve files and names.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "../core/base/status.h"
#include "arguments.h"
#include "binding.h"

namespace dke {

class Job {
 public:
  virtual ~Job() = default;
  // On the job's own thread. `ending`: the outcome is no longer awaited.
  virtual void Run(const std::atomic<bool>& ending) = 0;
  // On the thread that asked, in its environment: the value, or throws.
  virtual napi_value Finish(napi_env env) = 0;
};

// The jobs of one environment.
class Jobs {
 public:
  Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  ~Jobs();
  // A promise of what the job finishes with.
  napi_value Start(napi_env env, std::unique_ptr<Job> job);

 private:
  struct Running;
  void Open(napi_env env);
  static void Settle(napi_env env, napi_value, void*, void* running);
  static void End(void* jobs);
  void JoinSettled();

  std::atomic<bool> ending_{false};
  // Brings a thread's word that it is done. It keeps the environment alive while jobs run.
  napi_threadsafe_function done_ = nullptr;
  std::list<std::unique_ptr<Running>> running_;
  size_t unsettled_ = 0;
};

Jobs& JobsOf(napi_env env);

// Called by a job whose caller can wait: its thread gives way to those that answer requests, where
// they share a processor. The thread keeps that priority, and ends with the job.
void GoBehindOthers();

// Runs `work`, which gives a Result<T>; `finish` makes a value of the T.
template <typename T, typename Work>
napi_value RunLater(const Arguments& arguments, Work work, napi_value (*finish)(napi_env env, T value)) {
  class Task : public Job {
   public:
    Task(Work work, napi_value (*finish)(napi_env, T)) : work_(std::move(work)), finish_(finish) {}
    void Run(const std::atomic<bool>& ending) override { result_.emplace(work_(ending)); }
    napi_value Finish(napi_env env) override {
      if (!result_->ok()) Fail(env, result_->status());
      return finish_(env, result_->Take());
    }

   private:
    Work work_;
    napi_value (*const finish_)(napi_env, T);
    std::optional<Result<T>> result_;
  };
  return JobsOf(arguments.env()).Start(arguments.env(), std::make_unique<Task>(std::move(work), finish));
}

// What most jobs give: a key, which enters the table, and bytes.
napi_value FinishKey(napi_env env, LooseKey key);
napi_value FinishBytes(napi_env env, std::vector<uint8_t> bytes);
napi_value FinishSecret(napi_env env, SecureBuffer bytes);

}  // namespace dke
