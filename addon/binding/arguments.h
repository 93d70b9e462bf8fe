// How a call from JavaScript is taken apart: typed readers that refuse what they were not promised.
// Written on plain Node-API, because the hot calls (a cipher, a MAC, random bytes) are shorter than
// a wrapper object's life.
#pragma once

#include <cstdint>
#include <new>
#include <initializer_list>
#include <string>
#include <vector>

#include "../core/keys/algorithms.h"
#include "../core/ciphers/block_cipher.h"
#include "../core/keys/key_table.h"
#include "../core/wrapping/key_wrap.h"
#include "../core/digests/mac.h"
#include "../core/keys/operation_table.h"
#include "../core/public_key/rsa_encryption.h"
#include "../core/base/status.h"
#include "binding.h"

namespace dke {

// A view on the caller's memory: valid during the call.
struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0;
};

// Throws a CoreError with the status' code and message.
[[noreturn]] void Fail(Napi::Env env, const Status& status);

class Arguments {
 public:
  static constexpr size_t kMax = 8;
  Arguments(napi_env env, napi_callback_info info) : env_(env) { napi_get_cb_info(env, info, &count_, values_, nullptr, nullptr); }

  // Takes the arguments of a call that node-addon-api describes: a method of an object.
  explicit Arguments(const Napi::CallbackInfo& info) : env_(info.Env()), count_(info.Length() < kMax ? info.Length() : kMax) {
    for (size_t i = 0; i < count_; ++i) values_[i] = info[i];
  }

  napi_env env() const { return env_; }
  napi_value at(size_t index) const { return index < count_ ? values_[index] : nullptr; }
  bool has(size_t index) const;
  bool is_number(size_t index) const;

  Bytes ReadBytes(size_t index) const { return BytesOf(at(index)); }
  double Number(size_t index) const { return NumberOf(at(index)); }
  // A whole number within bounds.
  int64_t Integer(size_t index, int64_t least, int64_t most) const { return IntegerOf(at(index), least, most); }
  KeyRef Key(size_t index) const { return static_cast<KeyRef>(Integer(index, 0, int64_t{1} << 53)); }
  OperationRef Running(size_t index) const { return static_cast<OperationRef>(Integer(index, 0, int64_t{1} << 53)); }
  bool Boolean(size_t index) const;
  std::string Text(size_t index) const { return TextOf(at(index)); }
  // One byte a character, as Node reads header fields.
  std::string Latin1(size_t index) const;
  Direction ReadDirection(size_t index) const { return DirectionOf(at(index)); }
  KeyKind ReadKeyKind(size_t index) const { return KeyKindOf(at(index)); }
  Digest ReadDigest(size_t index) const { return DigestOf(at(index)); }

  // Readers for the members of an object argument. Member answers null when the member is absent or
  // undefined.
  napi_value Member(napi_value object, const char* name) const;
  Bytes BytesOf(napi_value value) const;
  double NumberOf(napi_value value) const;
  int64_t IntegerOf(napi_value value, int64_t least, int64_t most) const;
  std::string TextOf(napi_value value) const;
  // Copies at most `capacity - 1` characters; longer text is cut, which no name of ours survives.
  size_t ShortText(napi_value value, char* out, size_t capacity) const;
  Digest DigestOf(napi_value value) const;
  Direction DirectionOf(napi_value value) const;
  KeyKind KeyKindOf(napi_value value) const;
  bool BooleanOf(napi_value value) const;

  napi_value ReturnNumber(double value) const;
  napi_value ReturnBoolean(bool value) const;
  napi_value ReturnBuffer(const uint8_t* data, size_t size) const;
  napi_value ReturnBuffer(const std::vector<uint8_t>& bytes) const { return ReturnBuffer(bytes.data(), bytes.size()); }
  napi_value ReturnText(const std::string& text) const;
  // A string of bytes below 128. Cheaper than a buffer, and for what is not a secret only.
  napi_value ReturnAscii(const std::vector<uint8_t>& bytes) const;
  // Null elements stay undefined.
  napi_value ReturnArray(std::initializer_list<napi_value> elements) const;
  napi_value NewObject() const;
  void Set(napi_value object, const char* name, napi_value value) const { napi_set_named_property(env_, object, name, value); }

  // The value, or a thrown CoreError.
  template <typename T>
  T Unwrap(Result<T> result) const {
    if (!result.ok()) Fail(env_, result.status());
    return result.Take();
  }
  void Unwrap(const Status& status) const {
    if (!status.ok()) Fail(env_, status);
  }
  [[noreturn]] void Refuse(const char* what) const { Fail(env_, BadArgument(what)); }

 private:
  napi_env env_;
  size_t count_ = kMax;
  napi_value values_[kMax] = {};
};

// Throws "out of memory" as a CoreError when the call returns to JavaScript.
void ThrowOutOfMemory(napi_env env);

using Handler = napi_value (*)(const Arguments&);

// Gives a handler the shape Node-API calls: the one place where a C++ exception becomes a
// JavaScript one.
template <Handler handler>
napi_value Call(napi_env env, napi_callback_info info) {
  try {
    return handler(Arguments(env, info));
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(env);
  }
  return nullptr;
}

template <Handler handler>
void Define(Napi::Env env, Napi::Object exports, const char* name) {
  napi_value function;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, Call<handler>, nullptr, &function) != napi_ok ||
      napi_set_named_property(env, exports, name, function) != napi_ok) {
    throw Napi::Error::New(env, "the core addon cannot define its functions");
  }
}

// --- parameters that several functions take --- CipherParameters, RsaEncryptionParameters and
// UnwrappedKind in open-core.ts. Views on JavaScript's bytes: valid during the call.

CipherParameters ReadCipher(const Arguments& arguments, size_t index);
// ReadCipher for an object that was already taken from the arguments.
CipherParameters CipherOf(const Arguments& arguments, napi_value object);
MacParameters MacOf(const Arguments& arguments, napi_value object);
RsaEncryptionParameters RsaEncryptionOf(const Arguments& arguments, napi_value object);
RsaEncryptionParameters ReadRsaEncryption(const Arguments& arguments, size_t index);
// Without an initial value it is the one that the RFC fixes.
KeyWrapParameters KeyWrapOf(const Arguments& arguments, napi_value object);
// How a key is wrapped, and where in `object` the parameters of that way are (WrapParameters in
// core-types.ts).
enum class WrapWay { kKeyWrap, kCipher, kOaep };
struct Wrapping {
  WrapWay way;
  napi_value parameters;
};
Wrapping WrappingOf(const Arguments& arguments, napi_value object);
// RSA decryption with copies of what it takes, for a job: the private key (first argument), the
// parameters and the encrypted bytes (third argument).
class RsaDecryptionJob {
 public:
  RsaDecryptionJob(const Arguments& arguments, napi_value parameters);
  Result<SecureBuffer> Decrypt() const;

 private:
  HeldPkey key_;
  RsaEncryptionParameters parameters_;
  std::vector<uint8_t> label_;
  std::vector<uint8_t> encrypted_;
};
// 'private' is for the private key in a PKCS#8 structure.
UnwrappedKind ReadUnwrapped(const Arguments& arguments, size_t index);
// Bytes of the key that is unwrapped; 0 when they are not known.
size_t ReadUnwrappedLength(const Arguments& arguments, size_t index);

}  // namespace dke
