// The frame server as JavaScript sees it (FrameServer in open-core.ts): argument checks, and the
// way from a frame to a callback.
//
// `run` blocks its thread in the loop and calls the handlers synchronously. A handler that throws,
// or answers with anything but a number, ends the run with that error after its connection was
// closed; the server stays usable.
//
// A worker that is terminated, or whose process exits, has to come out of a blocked `run`. Node
// announces both through the thread's libuv loop, so the loop watches libuv's descriptor together
// with the sockets: `run` returns 'woken', and Node takes over. The same makes an ordinary message
// to the worker end its run.

#include "../core/base/user_files.h"
#include "../core/frames/frame_loop.h"
#include "arguments.h"

extern "C" int uv_backend_fd(const struct uv_loop_s* loop);

namespace dke {
namespace {

constexpr int64_t kFrameFailed = FrameHandler::kFailed;

class FrameServer : public Napi::ObjectWrap<FrameServer>, private FrameHandler {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "FrameServer",
                       {
                           InstanceAccessor<&FrameServer::Id>("id"),
                           InstanceMethod<&FrameServer::Run>("run"),
                           InstanceMethod<&FrameServer::Send>("send"),
                           InstanceMethod<&FrameServer::Learn>("learn"),
                           InstanceMethod<&FrameServer::Suspend<true>>("suspend"),
                           InstanceMethod<&FrameServer::Suspend<false>>("resume"),
                           InstanceMethod<&FrameServer::Forget>("forget"),
                           InstanceMethod<&FrameServer::Admit>("admit"),
                           InstanceMethod<&FrameServer::CloseConnection>("closeConnection"),
                           InstanceMethod<&FrameServer::Statistics>("statistics"),
                           InstanceMethod<&FrameServer::SetSpin>("setSpin"),
                           InstanceMethod<&FrameServer::Stop>("stop"),
                       });
  }

  explicit FrameServer(const Napi::CallbackInfo& info) : Napi::ObjectWrap<FrameServer>(info) {
    const Napi::Env env = info.Env();
    if (info.Length() < 2 || !info[0].IsObject() || !info[1].IsObject()) {
      Fail(env, "bad-argument", "createFrameServer takes options and handlers");
    }
    const FrameOptions options = ReadOptions(info[0].As<Napi::Object>());
    max_frame_ = options.max_frame;
    const auto handlers = info[1].As<Napi::Object>();
    handlers_ = Napi::Persistent(handlers);
    connect_ = ReadHandler(handlers, "connect");
    frame_ = ReadHandler(handlers, "frame");
    close_ = ReadHandler(handlers, "close");
    if (!handlers.Get("refuse").IsUndefined()) refuse_ = ReadHandler(handlers, "refuse");
    if (!handlers.Get("tooMany").IsUndefined()) too_many_ = ReadHandler(handlers, "tooMany");

    FrameLoop::Fault fault;
    std::string message;
    loop_ = FrameLoop::Open(options, &fault, &message);
    if (loop_ == nullptr) Fail(env, fault == FrameLoop::Fault::kArgument ? "bad-argument" : "io", message);
    request_ = Napi::Persistent(View(env, loop_->request()));
    reply_ = Napi::Persistent(View(env, loop_->reply()));

    uv_loop_s* event_loop = nullptr;
    if (napi_get_uv_event_loop(env, &event_loop) != napi_ok || !loop_->Watch(uv_backend_fd(event_loop))) {
      Fail(env, "internal", "the thread's event loop cannot be watched");
    }
  }

 private:
  // ---- Arguments --------------------------------------------------------------------------------

  static uint32_t ReadNumber(const Napi::Object& options, const char* name, double largest, const Napi::Value& value) {
    const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
    if (!(number >= 0 && number <= largest) || number != static_cast<double>(static_cast<uint32_t>(number))) {
      Fail(options.Env(), "bad-argument", std::string(name) + " must be a whole number, 0 to " +
                                              std::to_string(static_cast<uint32_t>(largest)));
    }
    return static_cast<uint32_t>(number);
  }

  static FrameOptions ReadOptions(const Napi::Object& from) {
    FrameOptions options;
    const auto read = [&](const char* name, double largest, auto* into) {
      const Napi::Value value = from.Get(name);
      if (!value.IsUndefined()) {
        *into = static_cast<std::remove_reference_t<decltype(*into)>>(ReadNumber(from, name, largest, value));
      }
    };
    const Napi::Value path = from.Get("path");
    if (path.IsString()) options.path = path.As<Napi::String>().Utf8Value();
    read("fd", INT32_MAX, &options.fd);
    read("mode", 0777, &options.mode);
    read("spinMicroseconds", 1'000'000, &options.spin_microseconds);
    read("maxFrame", UINT32_MAX, &options.max_frame);
    read("maxConnections", UINT32_MAX, &options.max_connections);
    read("stallMilliseconds", UINT32_MAX, &options.stall_milliseconds);
    read("laneVersion", 255, &options.lane_version);
    read("admissionMilliseconds", UINT32_MAX, &options.admission_milliseconds);
    read("admissionFrame", UINT32_MAX, &options.admission_frame);
    read("userConnections", UINT32_MAX, &options.user_connections);
    read("userBytes", UINT32_MAX, &options.user_bytes);
    return options;
  }

  static Napi::FunctionReference ReadHandler(const Napi::Object& handlers, const char* name) {
    const Napi::Value handler = handlers.Get(name);
    if (!handler.IsFunction()) {
      Fail(handlers.Env(), "bad-argument", std::string("the handler ") + name + " must be a function");
    }
    return Napi::Persistent(handler.As<Napi::Function>());
  }

  // A Buffer over the loop's memory. It owns the memory, not the loop: a view that outlives the
  // server stays harmless.
  Napi::Object View(Napi::Env env, uint8_t* memory) const {
    auto* const hold = new std::shared_ptr<FrameBuffers>(loop_->buffers());
    const auto release = [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<FrameBuffers>*>(hint); };
    napi_value view;
    if (napi_create_external_buffer(env, max_frame_, memory, release, hold, &view) != napi_ok) {
      delete hold;
      Fail(env, "unsupported", "this runtime does not let an addon share memory with JavaScript");
    }
    return Napi::Object(env, view);
  }

  static uint64_t ReadConnection(const Napi::CallbackInfo& info) {
    if (!info[0].IsNumber()) Fail(info.Env(), "bad-argument", "a connection is a number");
    return static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value());
  }

  // ---- Methods ----------------------------------------------------------------------------------

  Napi::Value Id(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), loop_->id()); }

  Napi::Value Run(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (loop_->running()) Fail(env, "bad-argument", "run was called from a handler: the server is in it already");
    env_ = env;
    turn_handlers_ = handlers_.Value();
    turn_connect_ = connect_.Value();
    turn_frame_ = frame_.Value();
    turn_close_ = close_.Value();
    turn_request_ = request_.Value();
    turn_reply_ = reply_.Value();
    const bool glance = info.Length() > 0 && info[0].IsBoolean() && info[0].As<Napi::Boolean>().Value();
    switch (glance ? loop_->Glance(this) : loop_->Run(this)) {
      case FrameLoop::RunResult::kWoken:
        return Napi::String::New(env, "woken");
      case FrameLoop::RunResult::kPending:
        return Napi::String::New(env, "pending");
      case FrameLoop::RunResult::kStopped:
        return Napi::String::New(env, "stopped");
      case FrameLoop::RunResult::kFailed:
        break;
    }
    return Napi::Value();  // the handler's exception is pending
  }

  Napi::Value Send(const Napi::CallbackInfo& info) {
    const uint64_t connection = ReadConnection(info);
    if (!info[1].IsNumber() || !info[2].IsTypedArray() ||
        info[2].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
      Fail(info.Env(), "bad-argument", "send takes a connection, a call code and bytes");
    }
    const auto body = info[2].As<Napi::Uint8Array>();
    const auto sent = loop_->Send(connection, info[1].As<Napi::Number>().Uint32Value(), body.Data(), body.ByteLength());
    if (sent == FrameLoop::Sent::kTooLong) Fail(info.Env(), "bad-argument", "the reply is longer than maxFrame");
    return Napi::Boolean::New(info.Env(), sent == FrameLoop::Sent::kYes);
  }

  static OperationSlot ReadSlot(const Arguments& arguments, napi_value session, napi_value kind) {
    return {static_cast<uint64_t>(arguments.IntegerOf(session, 0, int64_t{1} << 53)),
            static_cast<uint32_t>(arguments.IntegerOf(kind, 0, UINT32_MAX))};
  }

  Napi::Value Learn(const Napi::CallbackInfo& info) {
    const Arguments arguments(info);
    const napi_value object = arguments.at(1);
    const auto message = [&](const char* name) {
      const Bytes view = arguments.BytesOf(arguments.Member(object, name));
      return std::vector<uint8_t>(view.data, view.data + view.size);
    };
    const auto is_there = [&](const char* name) { return arguments.Member(object, name) != nullptr; };
    Replay replay;
    replay.slot = ReadSlot(arguments, arguments.Member(object, "session"), arguments.Member(object, "kind"));
    replay.init = message("init");
    replay.init_answer = message("initAnswer");
    if (is_there("operation")) {
      replay.operation = message("operation");
      replay.operation_answer = message("operationAnswer");
    }
    if (is_there("update")) {
      replay.update = message("update");
      replay.update_answer = message("updateAnswer");
      replay.last = message("last");
      replay.last_answer = message("lastAnswer");
    }
    const auto init_length = static_cast<int64_t>(replay.init.size());
    replay.iv_at = static_cast<size_t>(arguments.IntegerOf(arguments.Member(object, "ivAt"), 0, init_length));
    replay.iv_length = static_cast<size_t>(
        arguments.IntegerOf(arguments.Member(object, "ivLength"), 0, init_length - static_cast<int64_t>(replay.iv_at)));
    replay.unit = static_cast<size_t>(arguments.IntegerOf(arguments.Member(object, "unit"), 1, 1024));
    replay.key = FindKey(static_cast<KeyRef>(arguments.IntegerOf(arguments.Member(object, "key"), 0, int64_t{1} << 53)));
    if (napi_value mac = arguments.Member(object, "mac")) {
      replay.is_mac = true;
      replay.mac = MacOf(arguments, mac);
      replay.mac_length = static_cast<size_t>(
          arguments.IntegerOf(arguments.Member(object, "macLength"), 1, static_cast<int64_t>(MacLength(replay.mac))));
    } else {
      replay.direction = arguments.DirectionOf(arguments.Member(object, "direction"));
      replay.cipher = CipherOf(arguments, arguments.Member(object, "cipher"));
      // The additional data would have to outlive this call.
      if (replay.cipher.aad_length != 0 || (replay.iv_length != 0 && replay.iv_length != replay.cipher.iv_length)) {
        arguments.Refuse("this cipher is not for replays");
      }
    }
    if (napi_value used = arguments.Member(object, "usedIvs")) {
      replay.iv_owner = static_cast<uint64_t>(arguments.IntegerOf(arguments.Member(used, "owner"), 0, int64_t{1} << 53));
      for (const char* name : {"identity", "otherIdentity"}) {
        if (napi_value identity = arguments.Member(used, name)) {
          const Bytes bytes = arguments.BytesOf(identity);
          replay.identities.emplace_back(bytes.data, bytes.data + bytes.size);
        }
      }
      if (replay.identities.empty() || replay.iv_length == 0 || replay.is_mac) arguments.Refuse("an IV is used up by a key");
    }
    const bool whole = !replay.operation.empty() && !replay.operation_answer.empty();
    const bool parts = !replay.update.empty() && !replay.update_answer.empty() && !replay.last.empty() && !replay.last_answer.empty();
    if (replay.init.empty() || replay.init_answer.empty() || !(whole || parts)) {
      arguments.Refuse("a replay has an Init and an operation, in one piece or in parts, with their answers");
    }
    const CipherMode mode = replay.cipher.mode;
    if (parts && (replay.is_mac || (mode != CipherMode::kEcb && mode != CipherMode::kCbc))) {
      arguments.Refuse("this operation keeps something back for its last part");
    }
    return Napi::Number::New(info.Env(), static_cast<double>(loop_->Learn(ReadConnection(info), std::move(replay))));
  }

  template <bool suspended>
  void Suspend(const Napi::CallbackInfo& info) {
    const Arguments arguments(info);
    loop_->SuspendReplays(ReadConnection(info), ReadSlot(arguments, arguments.at(1), arguments.at(2)), suspended);
  }

  void Forget(const Napi::CallbackInfo& info) { loop_->ForgetReplays(ReadConnection(info)); }

  void Admit(const Napi::CallbackInfo& info) {
    if (!info[1].IsBoolean()) Fail(info.Env(), "bad-argument", "admit takes a connection and true or false");
    loop_->Admit(ReadConnection(info), info[1].As<Napi::Boolean>().Value());
  }

  void CloseConnection(const Napi::CallbackInfo& info) { loop_->CloseConnection(ReadConnection(info)); }

  Napi::Value Statistics(const Napi::CallbackInfo& info) {
    const FrameStatistics statistics = loop_->statistics();
    const auto result = Napi::Object::New(info.Env());
    result.Set("connections", static_cast<double>(statistics.connections));
    result.Set("frames", static_cast<double>(statistics.frames));
    result.Set("replayedFrames", static_cast<double>(statistics.replayed_frames));
    result.Set("laneMessages", static_cast<double>(statistics.lane_messages));
    result.Set("rejected", static_cast<double>(statistics.rejected));
    result.Set("refusedFrames", static_cast<double>(statistics.refused_frames));
    result.Set("heldBytes", static_cast<double>(statistics.held_bytes));
    return result;
  }

  void SetSpin(const Napi::CallbackInfo& info) {
    const uint64_t connection = ReadConnection(info);
    if (!info[1].IsNumber()) Fail(info.Env(), "bad-argument", "the spin is a number of microseconds");
    const int64_t spin = info[1].As<Napi::Number>().Int64Value();
    if (spin < 0 || spin > 1'000'000) Fail(info.Env(), "bad-argument", "the spin must be between 0 and 1000000 microseconds");
    loop_->SetSpin(connection, static_cast<uint32_t>(spin));
  }

  void Stop(const Napi::CallbackInfo&) { loop_->Stop(); }

  // ---- From the loop to JavaScript: plain Node-API, because every frame passes here -------------

  class Scope {
   public:
    explicit Scope(napi_env env) : env_(env) { napi_open_handle_scope(env, &scope_); }
    ~Scope() { napi_close_handle_scope(env_, scope_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    napi_env env_;
    napi_handle_scope scope_ = nullptr;
  };

  napi_value Number(uint64_t value) const {
    napi_value number = nullptr;
    napi_create_int64(env_, static_cast<int64_t>(value), &number);
    return number;
  }

  // Calls a handler. False when it threw, or when this thread may no longer run JavaScript.
  bool Call(napi_value function, const napi_value* arguments, size_t count, napi_value* result) const {
    return napi_call_function(env_, turn_handlers_, function, count, arguments, result) == napi_ok;
  }

  int64_t AsAnswer(napi_value result, int64_t largest, const char* rule) const {
    double answer;
    if (napi_get_value_double(env_, result, &answer) == napi_ok && answer >= -1 && answer <= static_cast<double>(largest) &&
        answer == static_cast<double>(static_cast<int64_t>(answer))) {
      return static_cast<int64_t>(answer);
    }
    napi_throw_range_error(env_, nullptr, rule);
    return kFrameFailed;
  }

  napi_value Who(const FramePeer& peer) const {
    napi_value who = nullptr;
    napi_create_object(env_, &who);
    napi_set_named_property(env_, who, "pid", Number(static_cast<uint64_t>(static_cast<int64_t>(peer.pid))));
    napi_set_named_property(env_, who, "uid", Number(peer.uid));
    napi_set_named_property(env_, who, "gid", Number(peer.gid));
    napi_value groups = nullptr;
    napi_create_array_with_length(env_, peer.groups.size(), &groups);
    for (uint32_t i = 0; i < peer.groups.size(); ++i) napi_set_element(env_, groups, i, Number(peer.groups[i]));
    napi_set_named_property(env_, who, "groups", groups);
    return who;
  }

  int64_t Connect(uint64_t connection, const FramePeer& peer, uint8_t version) override {
    const Scope scope(env_);
    const napi_value who = Who(peer);
    const napi_value arguments[] = {Number(connection), who, Number(version)};
    napi_value result;
    if (!Call(turn_connect_, arguments, 3, &result)) return kFrameFailed;
    return AsAnswer(result, 255, "the connect handler must return a version byte, or -1");
  }

  int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) override {
    const Scope scope(env_);
    const napi_value arguments[] = {Number(connection), Number(call_code), turn_request_, Number(length), turn_reply_};
    napi_value result;
    if (!Call(turn_frame_, arguments, 5, &result)) return kFrameFailed;
    return AsAnswer(result, max_frame_, "the frame handler must return a length up to maxFrame, 0 or -1");
  }

  int64_t Refuse(uint64_t connection, uint32_t length) override {
    if (refuse_.IsEmpty()) return kClose;
    const Scope scope(env_);
    const napi_value arguments[] = {Number(connection), turn_request_, Number(length), turn_reply_};
    napi_value result;
    if (!Call(refuse_.Value(), arguments, 4, &result)) return kFrameFailed;
    return AsAnswer(result, kSmall, "the refuse handler must return a length up to 4096, or -1");
  }

  int64_t TooMany(const FramePeer& peer) override {
    if (too_many_.IsEmpty()) return 0;
    const Scope scope(env_);
    const napi_value arguments[] = {Who(peer)};
    napi_value result;
    return Call(too_many_.Value(), arguments, 1, &result) ? 0 : kFrameFailed;
  }

  int64_t Close(uint64_t connection) override {
    const Scope scope(env_);
    const napi_value arguments[] = {Number(connection)};
    napi_value result;
    return Call(turn_close_, arguments, 1, &result) ? 0 : kFrameFailed;
  }

  std::unique_ptr<FrameLoop> loop_;
  uint32_t max_frame_ = 0;
  Napi::ObjectReference handlers_;
  Napi::FunctionReference connect_;
  Napi::FunctionReference frame_;
  Napi::FunctionReference close_;
  Napi::FunctionReference refuse_;
  Napi::FunctionReference too_many_;
  Napi::ObjectReference request_;
  Napi::ObjectReference reply_;

  // Handles of the references above, valid only during the running `run`.
  napi_env env_ = nullptr;
  napi_value turn_handlers_ = nullptr;
  napi_value turn_connect_ = nullptr;
  napi_value turn_frame_ = nullptr;
  napi_value turn_close_ = nullptr;
  napi_value turn_request_ = nullptr;
  napi_value turn_reply_ = nullptr;
};

uint32_t ReadServer(const Napi::CallbackInfo& info) {
  if (!info[0].IsNumber()) Fail(info.Env(), "bad-argument", "a frame server is a number");
  return info[0].As<Napi::Number>().Uint32Value();
}

void WakeFrameServer(const Napi::CallbackInfo& info) { FrameSignal::WakeById(ReadServer(info)); }
// For this process: no core file, and no other process of the same user reads its memory.
void ForbidDumpsOfAgent(const Napi::CallbackInfo&) { ForbidDumps(); }
void StopFrameServer(const Napi::CallbackInfo& info) { FrameSignal::StopById(ReadServer(info)); }

}  // namespace

void RegisterFrameServer(Napi::Env env, Napi::Object exports) {
  auto* const constructor = new Napi::FunctionReference(Napi::Persistent(FrameServer::Define(env)));
  const auto create = [constructor](const Napi::CallbackInfo& info) -> Napi::Value {
    return constructor->New({info[0], info[1]});
  };
  exports.Set("createFrameServer", Napi::Function::New(env, create, "createFrameServer"));
  exports.Set("wakeFrameServer", Napi::Function::New(env, WakeFrameServer, "wakeFrameServer"));
  exports.Set("forbidDumps", Napi::Function::New(env, ForbidDumpsOfAgent, "forbidDumps"));
  exports.Set("stopFrameServer", Napi::Function::New(env, StopFrameServer, "stopFrameServer"));
  env.AddCleanupHook([constructor] { delete constructor; });
}

}  // namespace dke
