// GCM, CCM, HMAC and CMAC of messages that are longer than one request, part by part. Nothing is
// kept between two parts: what has to be known for the next one is sealed, and the caller brings it
// back. So any process that has the service's key can continue, and a part that is done twice gives
// the same bytes twice.
//
// A sealed state opens only under the same key of the service and of the token, with the same
// parameters and the same use. The caller sees neither the chaining values nor, when a message is
// only checked, its plaintext. The token key's value is known to callers, who import, unwrap and
// derive such keys: nothing is sealed under it.
#pragma once

#include <vector>

#include "ciphers/block_cipher.h"
#include "digests/mac.h"
#include "ciphers/service_seal.h"

namespace dke {

// `kCheck` checks the tag of what was encrypted and gives no plaintext out.
enum class PartUse : uint8_t { kEncrypt = 1, kDecrypt = 2, kCheck = 3, kMac = 4 };

struct MessagePart {
  // The state that the previous part returned; empty with the first part. Only the first part has
  // additional data.
  const uint8_t* state = nullptr;
  size_t state_length = 0;
  bool last = false;
  const uint8_t* input = nullptr;
  size_t input_length = 0;
};

// Bytes of data and tag that come out of a part. The tag of a message is the end of the last part,
// in both directions.
size_t CipherPartLength(PartUse use, const CipherParameters& parameters, bool last, size_t input_length);

struct CipherPartDone {
  std::vector<uint8_t> state;  // sealed; empty after the last part
  uint64_t at = 0;             // bytes of data before this part
};

// `output` has `CipherPartLength` bytes and is not the input. `service`: of the tenant, with
// application and object as its owner.
Result<CipherPartDone> CipherPart(KeyRef key, const ServiceKey& service, PartUse use, const CipherParameters& parameters, const MessagePart& part,
                                  uint8_t* output, size_t output_length);

// What a sealed state is bound to: for the test that seals states of its own.
Result<std::vector<uint8_t>> PartBinding(const ServiceKey& service, const Key& key, PartUse use, const CipherParameters& parameters);

// Answers the sealed state, or after the last part the MAC.
Result<std::vector<uint8_t>> MacPart(KeyRef key, const ServiceKey& service, const MacParameters& parameters, const MessagePart& part);

}  // namespace dke
