#include "parameters.h"

#include <cstring>

namespace dke {

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
