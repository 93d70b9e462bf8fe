// SHA-1 and SHA-2 (FIPS 180-4), SHA-3 (FIPS 202): whole messages and in pieces. SHA-1 serves old
// digests and HMAC only.
#pragma once

#include "keys/key_table.h"
#include "keys/operation_table.h"

namespace dke {

// One context a thread for digests that begin and end within a call. Making one costs more than a
// short digest. Null when there is no memory.
EVP_MD_CTX* ScratchDigestContext();

Result<size_t> DigestMessage(Digest digest, const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length);

class DigestOperation : public Operation {
 public:
  static Result<std::unique_ptr<DigestOperation>> Begin(Digest digest);
  Status Update(const uint8_t* input, size_t input_length);
  Result<size_t> Final(uint8_t* output, size_t output_length);

 private:
  DigestOperation(Digest digest, EvpMdCtxPtr context)
      : Operation(OperationType::kDigest), digest_(digest), context_(std::move(context)) {}
  const Digest digest_;
  EvpMdCtxPtr context_;
};

}  // namespace dke
