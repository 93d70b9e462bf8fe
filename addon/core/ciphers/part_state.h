// GCM, CCM, HMAC and CMAC of messages that are longer than one request, part by part. Nothing is kept between two parts: what has to be known for
// the next one is sealed, and the caller brings it back. So any process that has the key can continue, and a part that is done twice
// gives the same bytes twice.
//
// A sealed state opens only under the same key, with the same parameters, the same use and the same context. The caller sees neither the chaining values
// nor, when a message is only checked, its plaintext.
#pragma once

#include <vector>

#include "ciphers/block_cipher.h"
#include "digests/mac.h"

namespace dke {

// `kCheck` checks the tag of what was encrypted and gives no plaintext out.
enum class PartUse : uint8_t { kEncrypt = 1, kDecrypt = 2, kCheck = 3, kMac = 4 };

struct MessagePart {
  // What the sealed state is bound to in addition to key, use and parameters: whose message it is.
  const uint8_t* context = nullptr;
  size_t context_length = 0;
  // The state that the previous part returned; empty with the first part. Only the first part has additional data.
  const uint8_t* state = nullptr;
  size_t state_length = 0;
  bool last = false;
  const uint8_t* input = nullptr;
  size_t input_length = 0;
};

// Bytes of data and tag that come out of a part. The tag of a message is the end of the last part, in both directions.
size_t CipherPartLength(PartUse use, const CipherParameters& parameters, bool last, size_t input_length);

// Answers the sealed state; nothing after the last part. `output` has `CipherPartLength` bytes and is not the input.
Result<std::vector<uint8_t>> CipherPart(KeyRef key, PartUse use, const CipherParameters& parameters, const MessagePart& part, uint8_t* output,
                                        size_t output_length);

// Answers the sealed state, or after the last part the MAC.
Result<std::vector<uint8_t>> MacPart(KeyRef key, const MacParameters& parameters, const MessagePart& part);

}  // namespace dke
