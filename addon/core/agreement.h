// ECDH (SP 800-56A, the x coordinate) on P-256, P-384 and P-521. The shared secret becomes a key, never bytes outside.
#pragma once

#include "key_table.h"

namespace dke {

// `peer` is an uncompressed point (SEC 1, 2.3.3); it is checked to be on the curve.
Result<KeyRef> Ecdh(KeyRef key, const uint8_t* peer, size_t peer_length);

}  // namespace dke
