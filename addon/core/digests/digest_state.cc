// libcrypto's digests by block are deprecated because they leave its providers out. There is no
// other way to a state that can be kept.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "digests/digest_state.h"

#include <cstring>
#include <initializer_list>

#include "base/secure_buffer.h"

namespace dke {
namespace {

// FIPS 180-4, 5.3.6: the start of SHA-512/224 and SHA-512/256.
constexpr uint64_t kSha512_224[8] = {0x8c3d37c819544da2, 0x73e1996689dcd4d6, 0x1dfab7ae32ff9c82, 0x679dd514582f9fcf,
                                     0x0f6d2b697bd44da8, 0x77e36f7304c48942, 0x3f9d85a86a1d36c8, 0x1112e6ad91d692a1};
constexpr uint64_t kSha512_256[8] = {0x22312194fc2bf72c, 0x9f555fa3c84c64c2, 0x2393b86b6f53b151, 0x963877195940eabd,
                                     0x96283ee2a88effe3, 0xbe5e1e2553863992, 0x2b0199fc2c85b8aa, 0x0eb72ddc81c52ca2};

constexpr uint64_t Rotated(uint64_t value, unsigned by) { return by == 0 ? value : value << by | value >> (64 - by); }

// FIPS 202, 3.2 and 3.3: Keccak-f[1600].
void Permute(uint64_t a[25]) {
  constexpr uint64_t kRounds[24] = {0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
                                    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
                                    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
                                    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
                                    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};
  constexpr unsigned kRotations[25] = {0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14};
  for (const uint64_t constant : kRounds) {
    uint64_t column[5];
    for (size_t x = 0; x < 5; x++) column[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
    for (size_t x = 0; x < 5; x++) {
      const uint64_t effect = column[(x + 4) % 5] ^ Rotated(column[(x + 1) % 5], 1);
      for (size_t y = 0; y < 25; y += 5) a[x + y] ^= effect;
    }
    uint64_t moved[25];
    for (size_t x = 0; x < 5; x++) {
      for (size_t y = 0; y < 5; y++) moved[y + 5 * ((2 * x + 3 * y) % 5)] = Rotated(a[x + 5 * y], kRotations[x + 5 * y]);
    }
    for (size_t y = 0; y < 25; y += 5) {
      for (size_t x = 0; x < 5; x++) a[x + y] = moved[x + y] ^ (~moved[(x + 1) % 5 + y] & moved[(x + 2) % 5 + y]);
    }
    a[0] ^= constant;
  }
}

uint64_t LittleEndian(const uint8_t* in) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = value << 8 | in[i];
  return value;
}

// Numbers as they are saved: big-endian, whatever this machine has.
template <typename Number>
uint8_t* Put(uint8_t* out, const Number* numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t byte = sizeof(Number); byte-- > 0;) *out++ = static_cast<uint8_t>(uint64_t{numbers[i]} >> (8 * byte));
  }
  return out;
}

template <typename Number>
const uint8_t* Get(const uint8_t* in, Number* numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t value = 0;
    for (size_t byte = 0; byte < sizeof(Number); byte++) value = value << 8 | *in++;
    numbers[i] = static_cast<Number>(value);
  }
  return in;
}

}  // namespace

DigestState::DigestState(Digest digest) : digest_(digest) {
  switch (digest) {
    case Digest::kSha1:
      family_ = Family::kSha1;
      block_ = SHA_CBLOCK;
      SHA1_Init(&sha1_);
      break;
    case Digest::kSha224:
    case Digest::kSha256:
      family_ = Family::kSha256;
      block_ = SHA256_CBLOCK;
      if (digest == Digest::kSha224) SHA224_Init(&sha256_);
      else SHA256_Init(&sha256_);
      break;
    case Digest::kSha384:
    case Digest::kSha512:
    case Digest::kSha512_224:
    case Digest::kSha512_256:
      family_ = Family::kSha512;
      block_ = SHA512_CBLOCK;
      if (digest == Digest::kSha384) SHA384_Init(&sha512_);
      else SHA512_Init(&sha512_);
      if (digest == Digest::kSha512_224) memcpy(sha512_.h, kSha512_224, sizeof kSha512_224);
      if (digest == Digest::kSha512_256) memcpy(sha512_.h, kSha512_256, sizeof kSha512_256);
      break;
    default:
      family_ = Family::kSha3;
      block_ = 200 - 2 * Row(digest).bytes;
      memset(lanes_, 0, sizeof lanes_);
      break;
  }
}

DigestState::~DigestState() {
  static_assert(sizeof sha512_ >= sizeof lanes_ && sizeof sha512_ >= sizeof sha256_ && sizeof sha512_ >= sizeof sha1_);
  Wipe(&sha512_, sizeof sha512_);
}

size_t DigestState::saved_size() const {
  return family_ == Family::kSha1 ? 20 : family_ == Family::kSha256 ? 32 : family_ == Family::kSha512 ? 64 : 200;
}

void DigestState::Save(uint8_t* out) const {
  switch (family_) {
    case Family::kSha1: {
      const SHA_LONG h[5] = {sha1_.h0, sha1_.h1, sha1_.h2, sha1_.h3, sha1_.h4};
      Put(out, h, 5);
      break;
    }
    case Family::kSha256: Put(out, sha256_.h, 8); break;
    case Family::kSha512: Put(out, sha512_.h, 8); break;
    case Family::kSha3: Put(out, lanes_, 25); break;
  }
}

void DigestState::Load(const uint8_t* in) {
  switch (family_) {
    case Family::kSha1:
      for (SHA_LONG* const h : {&sha1_.h0, &sha1_.h1, &sha1_.h2, &sha1_.h3, &sha1_.h4}) in = Get(in, h, 1);
      break;
    case Family::kSha256: Get(in, sha256_.h, 8); break;
    case Family::kSha512: Get(in, sha512_.h, 8); break;
    case Family::kSha3: Get(in, lanes_, 25); break;
  }
}

void DigestState::Blocks(const uint8_t* data, size_t count) {
  switch (family_) {
    case Family::kSha1: SHA1_Update(&sha1_, data, count * block_); break;
    case Family::kSha256: SHA256_Update(&sha256_, data, count * block_); break;
    case Family::kSha512: SHA512_Update(&sha512_, data, count * block_); break;
    case Family::kSha3:
      for (; count > 0; count--, data += block_) {
        for (size_t lane = 0; lane < block_ / 8; lane++) lanes_[lane] ^= LittleEndian(data + 8 * lane);
        Permute(lanes_);
      }
      break;
  }
}

void DigestState::Finish(const uint8_t* rest, size_t rest_length, uint64_t total, uint8_t* out) {
  const uint64_t bits = (total - rest_length) * 8;
  const size_t bytes = Row(digest_).bytes;
  uint8_t whole[SHA512_DIGEST_LENGTH];
  switch (family_) {
    case Family::kSha1:
      sha1_.Nl = static_cast<SHA_LONG>(bits);
      sha1_.Nh = static_cast<SHA_LONG>(bits >> 32);
      SHA1_Update(&sha1_, rest, rest_length);
      SHA1_Final(whole, &sha1_);
      break;
    case Family::kSha256:
      sha256_.Nl = static_cast<SHA_LONG>(bits);
      sha256_.Nh = static_cast<SHA_LONG>(bits >> 32);
      SHA256_Update(&sha256_, rest, rest_length);
      SHA256_Final(whole, &sha256_);
      break;
    case Family::kSha512:
      sha512_.Nl = bits;
      sha512_.Nh = 0;
      SHA512_Update(&sha512_, rest, rest_length);
      SHA512_Final(whole, &sha512_);
      break;
    case Family::kSha3: {
      uint8_t last[kMostBlock] = {};
      if (rest_length > 0) memcpy(last, rest, rest_length);
      last[rest_length] ^= 0x06;
      last[block_ - 1] ^= 0x80;
      Blocks(last, 1);
      for (size_t i = 0; i < bytes; i++) whole[i] = static_cast<uint8_t>(lanes_[i / 8] >> (8 * (i % 8)));
      Wipe(last, sizeof last);
      break;
    }
  }
  memcpy(out, whole, bytes);
  Wipe(whole, sizeof whole);
}

}  // namespace dke
