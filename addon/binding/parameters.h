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
RsaEncryptionParameters ReadRsaEncryption(const Arguments& arguments, size_t index);
// `padded` and `iv` are the places of these arguments; without an initial value it is the one that the RFC fixes.
KeyWrapParameters ReadKeyWrap(const Arguments& arguments, size_t padded, size_t iv);
// RSA decryption with copies of what it takes, for a job: the private key (first argument), the parameters (second) and the encrypted bytes (third).
class RsaDecryptionJob {
 public:
  explicit RsaDecryptionJob(const Arguments& arguments);
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
