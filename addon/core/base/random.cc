#include "base/random.h"

#include <openssl/rand.h>

namespace dke {

Status RandomPublic(uint8_t* out, size_t size) {
  if (size != 0 && RAND_bytes_ex(nullptr, out, size, 0) != 1) return CryptoFailure("random bytes");
  return {};
}

Status RandomSecret(uint8_t* out, size_t size) {
  if (size != 0 && RAND_priv_bytes_ex(nullptr, out, size, 0) != 1) return CryptoFailure("random bytes");
  return {};
}

}  // namespace dke
