#include "base/random.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/random.h>

#include <cerrno>

#include "base/secure_buffer.h"

namespace dke {

// The generators of this thread have seeds of their own, which a copied or resumed machine has
// twice. The kernel's learns of that (VMGENID), so 32 bytes of it go into every draw, as the
// additional input of SP 800-90A, 9.3.
Status RandomFrom(EVP_RAND_CTX* generator, uint8_t* out, size_t size) {
  if (size == 0) return {};
  Wiped<32> fresh;
  ssize_t taken;
  do taken = getrandom(fresh.bytes, sizeof fresh.bytes, 0);
  while (taken < 0 && errno == EINTR);
  if (taken != static_cast<ssize_t>(sizeof fresh.bytes) || generator == nullptr ||
      EVP_RAND_generate(generator, out, size, 0, 0, fresh.bytes, sizeof fresh.bytes) != 1) {
    return CryptoFailure("random bytes");
  }
  return {};
}

Status RandomPublic(uint8_t* out, size_t size) { return RandomFrom(RAND_get0_public(nullptr), out, size); }

Status RandomSecret(uint8_t* out, size_t size) { return RandomFrom(RAND_get0_private(nullptr), out, size); }

}  // namespace dke
