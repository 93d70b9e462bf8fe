// Parameters that several functions take (CipherParameters, RsaEncryptionParameters and UnwrappedKind in core.ts). Views on JavaScript's bytes: valid
// during the call.
#pragma once

#include "../core/block_cipher.h"
#include "../core/key_wrap.h"
#include "../core/mac.h"
#include "../core/rsa_encryption.h"
#include "arguments.h"

namespace dke {

CipherParameters ReadCipher(const Arguments& arguments, size_t index);
// The same from an object at hand.
CipherParameters CipherOf(const Arguments& arguments, napi_value object);
MacParameters MacOf(const Arguments& arguments, napi_value object);
RsaEncryptionParameters RsaEncryptionOf(const Arguments& arguments, napi_value object);
RsaEncryptionParameters ReadRsaEncryption(const Arguments& arguments, size_t index);
// Without an initial value it is the one that the RFC fixes.
KeyWrapParameters KeyWrapOf(const Arguments& arguments, napi_value object);
// How a key is wrapped, and where in `object` the parameters of that way are (WrapParameters in core-types.ts).
enum class WrapWay { kKeyWrap, kCipher, kOaep };
struct Wrapping {
  WrapWay way;
  napi_value parameters;
};
Wrapping WrappingOf(const Arguments& arguments, napi_value object);
// RSA decryption with copies of what it takes, for a job: the private key (first argument), the parameters and the encrypted bytes (third argument).
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
