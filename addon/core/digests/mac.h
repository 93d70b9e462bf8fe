// HMAC (FIPS 198-1) and AES-CMAC (SP 800-38B): whole messages and in pieces.
#pragma once

#include "keys/key_table.h"
#include "keys/operation_table.h"

namespace dke {

struct MacParameters {
  bool cmac = false;
  Digest digest = Digest::kSha256;  // for HMAC
};

inline const MacRow& Row(const MacParameters& parameters) {
  return parameters.cmac ? CmacRow() : HmacRow(parameters.digest);
}
inline size_t MacLength(const MacParameters& parameters) { return Row(parameters).bytes; }
// Whether a key may make this MAC.
Status CheckMacKey(const KeyUse& key, const MacRow& row);

Result<size_t> MacMessage(KeyRef key, const MacParameters& parameters, const uint8_t* input, size_t input_length, uint8_t* output,
                          size_t output_length);
Result<size_t> MacMessage(const KeyPtr& key, const MacParameters& parameters, const uint8_t* input, size_t input_length, uint8_t* output,
                          size_t output_length);

class MacOperation : public Operation {
 public:
  static Result<std::unique_ptr<MacOperation>> Begin(KeyRef key, const MacParameters& parameters);
  Status Update(const uint8_t* input, size_t input_length);
  Result<size_t> Final(uint8_t* output, size_t output_length);

 private:
  MacOperation(KeyPtr key, const MacParameters& parameters, EvpMacCtxPtr context)
      : Operation(OperationType::kMac), key_(std::move(key)), parameters_(parameters), context_(std::move(context)) {}
  KeyPtr key_;
  const MacParameters parameters_;
  EvpMacCtxPtr context_;
};

}  // namespace dke
