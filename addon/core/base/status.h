// How the core says that something went wrong: a code from one list (addon/core.ts names them for
// JavaScript) and a short message without data. No exceptions cross the core.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace dke {

enum class Code {
  kOk,
  kBadArgument,
  kBadKey,
  kKeyType,
  kDataLength,
  kBufferTooSmall,
  kAuthenticationFailed,
  kSignatureInvalid,
  kMemoryLock,
  kIo,
  kPermission,
  kFormat,
  kUnsupported,
  kInternal,
};

// The name JavaScript sees.
const char* CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value or the Status that explains its absence.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T Take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

// One constructor per situation.
inline Status BadArgument(const char* what) { return {Code::kBadArgument, what}; }
inline Status BadKey() { return {Code::kBadKey, "no such key"}; }
inline Status WrongKeyType() { return {Code::kKeyType, "the key is of another type or size than the algorithm needs"}; }
inline Status DataLength(const char* what) { return {Code::kDataLength, what}; }
inline Status BufferTooSmall() { return {Code::kBufferTooSmall, "the output is shorter than the result"}; }
inline Status AuthenticationFailed() { return {Code::kAuthenticationFailed, "the data does not authenticate"}; }
inline Status Unsupported(const char* what) { return {Code::kUnsupported, what}; }
// libcrypto refused something that it should not have. Its error queue may name data, so it is
// dropped.
Status CryptoFailure(const char* what);

}  // namespace dke

#define DKE_RETURN_IF_ERROR(expression)        \
  do {                                         \
    ::dke::Status dke_status = (expression);   \
    if (!dke_status.ok()) return dke_status;   \
  } while (false)
