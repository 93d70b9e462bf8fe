// AES-CCM (SP 800-38C) part by part and in constant memory, where the length of the message is
// known beforehand. libcrypto's own CCM takes a message in one piece only, so this composes its CBC
// (the MAC) and its CTR (the encryption).
#pragma once

#include <memory>
#include <vector>

#include "ciphers/block_cipher.h"

namespace dke {

// A.3: the counter block of number 0, which encrypts the tag; those of the message follow it.
void CcmFirstBlock(const CipherParameters& parameters, uint8_t block[16]);
// A.2: what comes before the data in what is authenticated, in whole blocks.
std::vector<uint8_t> CcmFront(const CipherParameters& parameters);

class CcmStream {
 public:
  // The parameters are checked already (`CheckCipherParameters`).
  static Result<std::unique_ptr<CcmStream>> Begin(const Key& key, Direction direction, const CipherParameters& parameters);
  ~CcmStream();

  // Encrypts or decrypts; as many bytes come out as go in. What decryption gives out is not
  // authenticated before `Tag` was compared.
  Status Update(const uint8_t* input, size_t length, uint8_t* output);
  // The whole tag of 16 bytes, whose front is the message's.
  Status Tag(uint8_t tag[16]);

 private:
  explicit CcmStream(Direction direction) : direction_(direction) {}
  Status Mac(const uint8_t* data, size_t length);
  Status PadMac();

  const Direction direction_;
  EvpCipherCtxPtr mac_;
  EvpCipherCtxPtr counter_;
  size_t macced_ = 0;
  uint8_t last_[16] = {};  // of the CBC so far
  uint8_t mask_[16] = {};  // what the tag is encrypted with
};

}  // namespace dke
