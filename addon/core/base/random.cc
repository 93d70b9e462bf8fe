#include "base/random.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "base/secure_buffer.h"

namespace dke {

// The generators of this thread have seeds of their own, which a copied or resumed machine has
// twice. The kernel's learns of that (VMGENID), so 32 bytes of it go into every draw, as the
// additional input of SP 800-90A, 9.3; where it does not, the time in nanoseconds differs.
Status RandomFrom(EVP_RAND_CTX* generator, uint8_t* out, size_t size) {
  if (size == 0) return {};
  constexpr size_t kFresh = 32;
  Wiped<kFresh + sizeof(timespec)> fresh;
  ssize_t taken;
  do taken = getrandom(fresh.bytes, kFresh, 0);
  while (taken < 0 && errno == EINTR);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  memcpy(fresh.bytes + kFresh, &now, sizeof now);
  if (taken != static_cast<ssize_t>(kFresh) || generator == nullptr ||
      EVP_RAND_generate(generator, out, size, 0, 0, fresh.bytes, sizeof fresh.bytes) != 1) {
    return CryptoFailure("random bytes");
  }
  return {};
}

Status RandomPublic(uint8_t* out, size_t size) { return RandomFrom(RAND_get0_public(nullptr), out, size); }

Status RandomSecret(uint8_t* out, size_t size) { return RandomFrom(RAND_get0_private(nullptr), out, size); }

namespace {

// What one draw stirs in remains in the state of the generator, for those that follow.
Status Stir(EVP_RAND_CTX* generator) {
  Wiped<16> dropped;
  return RandomFrom(generator, dropped.bytes, sizeof dropped.bytes);
}

}  // namespace

Status StirPublic() { return Stir(RAND_get0_public(nullptr)); }

EVP_PKEY* NewPair(EVP_PKEY_CTX* context) {
  EVP_PKEY* pair = nullptr;
  if (!Stir(RAND_get0_private(nullptr)).ok() || EVP_PKEY_generate(context, &pair) != 1) return nullptr;
  return pair;
}

EVP_PKEY* NewPair(const char* kind, const char* group) {
  EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr);
  const bool set = context != nullptr && EVP_PKEY_keygen_init(context) == 1 &&
                   (group == nullptr || EVP_PKEY_CTX_set_group_name(context, group) == 1);
  EVP_PKEY* const pair = set ? NewPair(context) : nullptr;
  EVP_PKEY_CTX_free(context);
  return pair;
}

}  // namespace dke
