// Salts and nonces that stay apart where random numbers do not: in two copies of one machine that
// resume with one state. Each follows from a secret of the service, a counter, random bytes and the
// message, so that two copies give two messages different ones.
#pragma once

#include "base/secure_buffer.h"
#include "base/status.h"

namespace dke {

constexpr size_t kMostHedged = 64;

// `secret`: the key that seals the message, which no one outside has.
Status HedgedRandom(const SecureBuffer& secret, const uint8_t* message, size_t size, uint8_t* out, size_t out_size);

// HedgedRandom with the counter and the random bytes that it would draw: for tests.
Status HedgeWith(const SecureBuffer& secret, uint64_t count, const uint8_t (&random)[32], const uint8_t* message, size_t size, uint8_t* out,
                 size_t out_size);

}  // namespace dke
