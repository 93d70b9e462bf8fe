// HKDF (RFC 5869): into a key, or into a secure buffer for the core's own use. scrypt (RFC 7914): from a passphrase to a key.
#pragma once

#include "key_table.h"

namespace dke {

// Both steps, or one of them (RFC 5869, 2.2 and 2.3). Extraction alone gives as many bytes as the digest has.
enum class HkdfSteps : uint8_t { kBoth, kExtract, kExpand };

Status HkdfInto(Digest digest, const uint8_t* secret, size_t secret_length, const uint8_t* salt, size_t salt_length,
                const uint8_t* info, size_t info_length, uint8_t* output, size_t output_length,
                HkdfSteps steps = HkdfSteps::kBoth);
Result<KeyRef> HkdfKey(KeyRef key, Digest digest, const uint8_t* salt, size_t salt_length, const uint8_t* info, size_t info_length,
                       KeyKind kind, size_t bytes, HkdfSteps steps = HkdfSteps::kBoth);

// A key encryption key from a passphrase. `cost` is N as a power of two, 1 to 24; the work takes 128 * r * N bytes, at most 1 GiB.
Result<KeyRef> ScryptKey(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                         uint32_t r, uint32_t p);
// The same for the published vectors.
Status ScryptInto(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                  uint32_t r, uint32_t p, uint8_t* output, size_t output_length);

}  // namespace dke
