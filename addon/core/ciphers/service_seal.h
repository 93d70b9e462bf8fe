// Values that leave the service and return through a caller, sealed under a key of the service.
//
// Who chooses the sealed bytes: any caller, who also knows, uses and derives from the keys of the
// token; so none of those keys is in the derivation. What proves them: `Open` says only that the
// service sealed them for this owner; `Parse` of the type that is opened (ciphers/message_state.h)
// proves the content. Whose they are: tenant by the KEK, application and object by the owner, which
// is the salt. How large: the caller of `Open` says. Lost or repeated: sealing depends on nothing
// but its input, so the same value gives the same bytes. What others see: the length.
#pragma once

#include <vector>

#include "keys/key_table.h"
#include "keys/labels.h"

namespace dke {

// A key of the service for one label and one owner. It follows from a key encryption key only,
// which no caller can use, know or derive from. It is no `Key` and has no number, so no function of
// token keys takes it, and its own functions take no token key.
class ServiceKey {
 public:
  static Result<ServiceKey> Of(KeyRef kek, Label label, const uint8_t* owner, size_t owner_length);

  // What `Seal` adds to a value.
  static constexpr size_t kOverhead = 48;

  // `binding`: what has to be the same when it is opened.
  Result<std::vector<uint8_t>> Seal(const std::vector<uint8_t>& binding, const uint8_t* plain, size_t size) const;
  // kBadArgument whatever is wrong with it.
  Result<SecureBuffer> Open(const std::vector<uint8_t>& binding, const uint8_t* sealed, size_t sealed_size) const;
  // Binds a value to a token key without telling anything about it.
  Status Fingerprint(const SecureBuffer& secret, uint8_t out[32]) const;

 private:
  explicit ServiceKey(SecureBuffer value) : value_(std::move(value)) {}
  Status Mac(size_t half, const uint8_t* input, size_t size, uint8_t out[32]) const;
  Result<EvpCipherCtxPtr> Context(const uint8_t* salt, const std::vector<uint8_t>& binding, int encrypting) const;
  SecureBuffer value_;  // two keys: of MACs, and of the keys that seal
};

}  // namespace dke
