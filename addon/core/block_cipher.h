// AES in the modes of SP 800-38A (ECB, CBC, CTR), CBC with PKCS#7 padding, CCM of SP 800-38C and GCM of SP 800-38D: whole
// messages and in pieces. Decryption in GCM holds everything back until the tag has been checked; CCM, which authenticates
// before it encrypts, holds everything back both ways.
#pragma once

#include <openssl/crypto.h>

#include <memory>
#include <vector>

#include "key_table.h"
#include "operation.h"

namespace dke {

// Memory of the crypto heap: wiped when it is given back.
struct CryptoFree {
  void operator()(uint8_t* memory) const { OPENSSL_free(memory); }
};

// A message that is collected, in memory of the crypto heap.
class HeldBytes {
 public:
  Status Append(const uint8_t* input, size_t length);
  const uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<uint8_t, CryptoFree> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct CipherParameters {
  CipherMode mode;
  uint8_t iv[256];
  size_t iv_length = 0;
  const uint8_t* aad = nullptr;
  size_t aad_length = 0;
  size_t tag_length = 16;
  // CCM: how long the message is, without its tag. CCM says so in its first block.
  size_t data_length = 0;
  int counter_bits = 128;
};

// Checks everything that can be checked before a key is there.
Status CheckCipherParameters(const CipherParameters& parameters);

// Upper bound, exact but for padded decryption, of a whole message's output.
size_t CipherLength(Direction direction, const CipherParameters& parameters, size_t input_length);

// Returns the bytes written. kBufferTooSmall before anything is written; input and output may be the same memory.
Result<size_t> CipherMessage(KeyRef key, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length);
Result<size_t> CipherMessage(const KeyPtr& key, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length);

// A secret key of `bytes` bytes from the front of what `data` encrypts to, in ECB or CBC. `data` is whole blocks, and not shorter.
Result<KeyRef> DeriveByEncryption(KeyRef base, const CipherParameters& parameters, const uint8_t* data, size_t length, KeyKind kind,
                                  size_t bytes);

class CipherOperation : public Operation {
 public:
  static Result<std::unique_ptr<CipherOperation>> Begin(KeyRef key, Direction direction, const CipherParameters& parameters);
  ~CipherOperation() override;

  size_t UpdateLength(size_t input_length) const;
  size_t FinalLength() const;
  Result<size_t> Update(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length);
  Result<size_t> Final(uint8_t* output, size_t output_length);
  // The whole message at once, from the key's cached context. Only before the first Update.
  Result<size_t> OneShot(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length);
  size_t OneShotLength(size_t input_length) const;
  bool started() const { return started_; }

 private:
  CipherOperation(KeyPtr key, Direction direction, const CipherParameters& parameters);
  Status Start();
  Status CheckKey();
  bool HoldsBack() const;
  Result<size_t> FinalHeld(uint8_t* output, size_t output_length);
  Result<size_t> FinalPadded(uint8_t* output, size_t output_length);

  KeyPtr key_;
  const Direction direction_;
  CipherParameters parameters_;
  std::vector<uint8_t> aad_;
  EvpCipherCtxPtr context_;
  bool started_ = false;
  size_t total_ = 0;
  // What is held back: the ciphertext of GCM decryption, the message of CCM.
  HeldBytes held_;
  // Padded decryption: the last piece, when the caller's buffer was too small for it.
  std::unique_ptr<uint8_t, CryptoFree> last_;
  size_t last_length_ = 0;
};

}  // namespace dke
