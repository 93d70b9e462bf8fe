#include "arguments.h"

#include <cmath>
#include <cstring>

namespace dke {

void ThrowOutOfMemory(napi_env env) {
  try {
    Fail(Napi::Env(env), "internal", "out of memory");
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
  }
}

void Fail(Napi::Env env, const Status& status) { Fail(env, CodeName(status.code()), status.message()); }

bool Arguments::has(size_t index) const {
  if (index >= count_) return false;
  napi_valuetype type;
  return napi_typeof(env_, values_[index], &type) == napi_ok && type != napi_undefined;
}

bool Arguments::is_number(size_t index) const {
  napi_valuetype type;
  return index < count_ && napi_typeof(env_, values_[index], &type) == napi_ok && type == napi_number;
}

Bytes Arguments::BytesOf(napi_value value) const {
  bool is_view = false;
  void* data = nullptr;
  size_t size = 0;
  if (value == nullptr || napi_is_buffer(env_, value, &is_view) != napi_ok || !is_view ||
      napi_get_buffer_info(env_, value, &data, &size) != napi_ok) {
    Refuse("a Uint8Array is needed");
  }
  // An empty view has no address; the C library's functions want one even for nothing.
  static uint8_t nothing = 0;
  return {data == nullptr ? &nothing : static_cast<uint8_t*>(data), size};
}

double Arguments::NumberOf(napi_value value) const {
  double number;
  if (value == nullptr || napi_get_value_double(env_, value, &number) != napi_ok) Refuse("a number is needed");
  return number;
}

int64_t Arguments::IntegerOf(napi_value value, int64_t least, int64_t most) const {
  const double number = NumberOf(value);
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) || number != std::floor(number)) {
    Refuse("a number is out of range");
  }
  return static_cast<int64_t>(number);
}

bool Arguments::BooleanOf(napi_value value) const {
  bool result;
  if (value == nullptr || napi_get_value_bool(env_, value, &result) != napi_ok) Refuse("a boolean is needed");
  return result;
}

bool Arguments::Boolean(size_t index) const { return BooleanOf(at(index)); }

size_t Arguments::ShortText(napi_value value, char* out, size_t capacity) const {
  size_t length = 0;
  if (value == nullptr || napi_get_value_string_utf8(env_, value, out, capacity, &length) != napi_ok) Refuse("a string is needed");
  return length;
}

std::string Arguments::Latin1(size_t index) const {
  size_t length = 0;
  if (at(index) == nullptr || napi_get_value_string_latin1(env_, at(index), nullptr, 0, &length) != napi_ok) Refuse("a string is needed");
  std::string text(length, '\0');
  napi_get_value_string_latin1(env_, at(index), text.data(), length + 1, &length);
  return text;
}

std::string Arguments::TextOf(napi_value value) const {
  size_t length = 0;
  if (value == nullptr || napi_get_value_string_utf8(env_, value, nullptr, 0, &length) != napi_ok) Refuse("a string is needed");
  std::string text(length, '\0');
  napi_get_value_string_utf8(env_, value, text.data(), length + 1, &length);
  return text;
}

Direction Arguments::DirectionOf(napi_value value) const {
  char text[12];
  const size_t length = ShortText(value, text, sizeof text);
  if (std::string_view(text, length) == "encrypt") return Direction::kEncrypt;
  if (std::string_view(text, length) == "decrypt") return Direction::kDecrypt;
  Refuse("a direction is 'encrypt' or 'decrypt'");
}

KeyKind Arguments::KeyKindOf(napi_value value) const {
  char text[24];
  const KeyKindRow* row = FindKeyKind(std::string_view(text, ShortText(value, text, sizeof text)));
  if (row == nullptr || !row->secret) Refuse("the kind of a secret key is 'aes', 'generic' or 'kek'");
  return row->kind;
}

Digest Arguments::DigestOf(napi_value value) const {
  char text[12];
  const DigestRow* row = FindDigest(std::string_view(text, ShortText(value, text, sizeof text)));
  if (row == nullptr) Refuse("no such digest");
  return row->digest;
}

napi_value Arguments::Member(napi_value object, const char* name) const {
  napi_value value;
  napi_valuetype type;
  if (object == nullptr || napi_typeof(env_, object, &type) != napi_ok || type != napi_object ||
      napi_get_named_property(env_, object, name, &value) != napi_ok) {
    Refuse("an object is needed");
  }
  if (napi_typeof(env_, value, &type) != napi_ok || type == napi_undefined) return nullptr;
  return value;
}

napi_value Arguments::ReturnNumber(double value) const {
  napi_value result;
  napi_create_double(env_, value, &result);
  return result;
}

napi_value Arguments::ReturnBoolean(bool value) const {
  napi_value result;
  napi_get_boolean(env_, value, &result);
  return result;
}

napi_value Arguments::ReturnBuffer(const uint8_t* data, size_t size) const {
  napi_value result;
  void* copied;
  if (napi_create_buffer(env_, size, &copied, &result) != napi_ok) Fail(env_, "internal", "no memory for a buffer");
  if (size != 0) memcpy(copied, data, size);
  return result;
}

napi_value Arguments::ReturnText(const std::string& text) const {
  napi_value result;
  napi_create_string_utf8(env_, text.data(), text.size(), &result);
  return result;
}

napi_value Arguments::ReturnAscii(const std::vector<uint8_t>& bytes) const {
  napi_value result;
  if (napi_create_string_latin1(env_, reinterpret_cast<const char*>(bytes.data()), bytes.size(), &result) != napi_ok) {
    Fail(env_, "internal", "no memory for a string");
  }
  return result;
}

napi_value Arguments::ReturnArray(std::initializer_list<napi_value> elements) const {
  napi_value result;
  if (napi_create_array_with_length(env_, elements.size(), &result) != napi_ok) Fail(env_, "internal", "no memory for an array");
  uint32_t index = 0;
  for (const napi_value element : elements) {
    if (element != nullptr) napi_set_element(env_, result, index, element);
    index++;
  }
  return result;
}

napi_value Arguments::NewObject() const {
  napi_value result;
  napi_create_object(env_, &result);
  return result;
}

MacParameters MacOf(const Arguments& arguments, napi_value object) {
  char name[16];
  const std::string_view algorithm(name, arguments.ShortText(arguments.Member(object, "algorithm"), name, sizeof name));
  MacParameters parameters;
  if (algorithm == "aes-cmac") {
    parameters.cmac = true;
  } else if (algorithm == "hmac") {
    parameters.digest = arguments.DigestOf(arguments.Member(object, "digest"));
  } else {
    arguments.Refuse("no such MAC");
  }
  return parameters;
}

CipherParameters ReadCipher(const Arguments& arguments, size_t index) { return CipherOf(arguments, arguments.at(index)); }

CipherParameters CipherOf(const Arguments& arguments, napi_value object) {
  CipherParameters parameters;
  char name[16];
  const CipherRow* row = FindCipher(std::string_view(name, arguments.ShortText(arguments.Member(object, "algorithm"), name, sizeof name)));
  if (row == nullptr) arguments.Refuse("no such cipher");
  parameters.mode = row->mode;
  if (row->iv_max != 0) {
    const Bytes iv = arguments.BytesOf(arguments.Member(object, "iv"));
    if (iv.size < row->iv_min || iv.size > row->iv_max) arguments.Refuse("the IV has the wrong length");
    memcpy(parameters.iv, iv.data, iv.size);
    parameters.iv_length = iv.size;
  }
  if (row->mode == CipherMode::kCtr) {
    if (napi_value bits = arguments.Member(object, "counterBits")) parameters.counter_bits = static_cast<int>(arguments.IntegerOf(bits, 1, 128));
  }
  if (row->mode == CipherMode::kCcm) {
    parameters.data_length = static_cast<size_t>(arguments.IntegerOf(arguments.Member(object, "dataLength"), 0, int64_t{1} << 31));
  }
  if (row->mode == CipherMode::kGcm || row->mode == CipherMode::kCcm) {
    const int64_t shortest = row->mode == CipherMode::kGcm ? 12 : 4;
    parameters.tag_length = static_cast<size_t>(arguments.IntegerOf(arguments.Member(object, "tagLength"), shortest, 16));
    if (napi_value aad = arguments.Member(object, "aad")) {
      const Bytes bytes = arguments.BytesOf(aad);
      parameters.aad = bytes.data;
      parameters.aad_length = bytes.size;
    }
  }
  return parameters;
}

RsaEncryptionParameters ReadRsaEncryption(const Arguments& arguments, size_t index) { return RsaEncryptionOf(arguments, arguments.at(index)); }

RsaEncryptionParameters RsaEncryptionOf(const Arguments& arguments, napi_value object) {
  RsaEncryptionParameters parameters;
  char name[8];
  const std::string_view padding(name, arguments.ShortText(arguments.Member(object, "padding"), name, sizeof name));
  if (padding == "pkcs1") {
    parameters.padding = RsaPadding::kPkcs1;
    return parameters;
  }
  if (padding != "oaep") arguments.Refuse("no such RSA padding");
  parameters.digest = arguments.DigestOf(arguments.Member(object, "digest"));
  parameters.mgf_digest = arguments.DigestOf(arguments.Member(object, "mgfDigest"));
  if (napi_value label = arguments.Member(object, "label")) {
    const Bytes bytes = arguments.BytesOf(label);
    parameters.label = bytes.data;
    parameters.label_length = bytes.size;
  }
  return parameters;
}

KeyWrapParameters KeyWrapOf(const Arguments& arguments, napi_value object) {
  KeyWrapParameters parameters;
  parameters.padded = arguments.BooleanOf(arguments.Member(object, "padded"));
  napi_value iv = arguments.Member(object, "iv");
  if (iv == nullptr) return parameters;
  const Bytes bytes = arguments.BytesOf(iv);
  if (bytes.size != InitialValueLength(parameters.padded)) arguments.Refuse("the initial value of AES key wrap has the wrong length");
  parameters.iv = bytes.data;
  return parameters;
}

Wrapping WrappingOf(const Arguments& arguments, napi_value object) {
  char name[16];
  const std::string_view way(name, arguments.ShortText(arguments.Member(object, "way"), name, sizeof name));
  if (way == "key-wrap") return {WrapWay::kKeyWrap, object};
  const bool is_cipher = way == "cipher";
  if (!is_cipher && way != "oaep") arguments.Refuse("no such way to wrap a key");
  napi_value parameters = arguments.Member(object, is_cipher ? "cipher" : "oaep");
  if (parameters == nullptr) arguments.Refuse("an object is needed");
  return {is_cipher ? WrapWay::kCipher : WrapWay::kOaep, parameters};
}

size_t ReadUnwrappedLength(const Arguments& arguments, size_t index) {
  return arguments.has(index) ? static_cast<size_t>(arguments.Integer(index, 0, 4096)) : 0;
}

RsaDecryptionJob::RsaDecryptionJob(const Arguments& arguments, napi_value parameters)
    : key_(arguments.Unwrap(HoldPkey(arguments.Key(0)))), parameters_(RsaEncryptionOf(arguments, parameters)) {
  const Bytes encrypted = arguments.ReadBytes(2);
  // No modulus is longer.
  if (encrypted.size > 1024) Fail(arguments.env(), AuthenticationFailed());
  encrypted_.assign(encrypted.data, encrypted.data + encrypted.size);
  if (parameters_.label_length != 0) label_.assign(parameters_.label, parameters_.label + parameters_.label_length);
}

Result<SecureBuffer> RsaDecryptionJob::Decrypt() const {
  RsaEncryptionParameters parameters = parameters_;
  parameters.label = label_.data();
  return RsaDecrypt(key_, parameters, encrypted_.data(), encrypted_.size());
}

UnwrappedKind ReadUnwrapped(const Arguments& arguments, size_t index) {
  char text[24];
  if (std::string_view(text, arguments.ShortText(arguments.at(index), text, sizeof text)) == "private") return std::nullopt;
  return arguments.ReadKeyKind(index);
}

}  // namespace dke
