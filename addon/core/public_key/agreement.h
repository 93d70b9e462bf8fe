// ECDH (SP 800-56A, the x coordinate) on P-256, P-384 and P-521, as it is or through the KDF of
// ANSI X9.63 (SEC 1, 3.6.1). The shared secret becomes a key, never bytes outside.
#pragma once

#include <optional>

#include "keys/key_table.h"

namespace dke {

// `peer` is an uncompressed point (SEC 1, 2.3.3); it is checked to be on the curve.
Result<KeyRef> Ecdh(KeyRef key, const uint8_t* peer, size_t peer_length);

struct EcdhDerivation {
  KeyKind kind = KeyKind::kGeneric;
  // 0: all of the shared secret. Fewer are its last ones, as PKCS#11 cuts it; with a KDF they are
  // what it gives.
  size_t bytes = 0;
  std::optional<Digest> kdf;
  const uint8_t* shared_info = nullptr;
  size_t shared_info_length = 0;
};
Result<KeyRef> EcdhKey(KeyRef key, const uint8_t* peer, size_t peer_length, const EcdhDerivation& derivation);

}  // namespace dke
