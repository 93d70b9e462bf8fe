// libcrypto's numbers, which may be secret: wiped when they go.
#pragma once

#include <openssl/bn.h>

#include <memory>

namespace dke {

struct BignumDeleter {
  void operator()(BIGNUM* number) const { BN_clear_free(number); }
};
struct BignumContextDeleter {
  void operator()(BN_CTX* context) const { BN_CTX_free(context); }
};
using BignumPtr = std::unique_ptr<BIGNUM, BignumDeleter>;
using BignumContextPtr = std::unique_ptr<BN_CTX, BignumContextDeleter>;

}  // namespace dke
