#include "ciphers/mode_blocks.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

namespace dke {

Result<EvpCipherCtxPtr> BlockContext(const Key& key, CipherMode mode, const uint8_t* iv) {
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  if (context == nullptr || EVP_CipherInit_ex(context.get(), AesCipher(Row(mode), key.secret.size()), nullptr, key.secret.data(), iv, 1) != 1) {
    return CryptoFailure("cipher");
  }
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  return context;
}

Status EncryptBlock(const Key& key, const uint8_t in[kBlock], uint8_t out[kBlock]) {
  Result<EvpCipherCtxPtr> context = BlockContext(key, CipherMode::kEcb, nullptr);
  if (!context.ok()) return context.status();
  int written = 0;
  return EVP_CipherUpdate(context.value().get(), out, &written, in, kBlock) == 1 ? Status() : CryptoFailure("cipher");
}

Status ChainBlocks(const Key& key, uint8_t chain[kBlock], const uint8_t* data, size_t length) {
  if (length == 0) return {};
  Result<EvpCipherCtxPtr> context = BlockContext(key, CipherMode::kCbc, chain);
  if (!context.ok()) return context.status();
  Wiped<kChunk + kBlock> scratch;
  for (size_t at = 0; at < length;) {
    const size_t piece = std::min(length - at, kChunk);
    int written = 0;
    if (EVP_CipherUpdate(context.value().get(), scratch.bytes, &written, data + at, static_cast<int>(piece)) != 1) return CryptoFailure("CBC");
    at += piece;
    if (at == length) memcpy(chain, scratch.bytes + piece - kBlock, kBlock);
  }
  return {};
}

Status ApplyCounter(const Key& key, const uint8_t first[kBlock], bool in_32_bits, uint64_t from, const uint8_t* input, size_t length, uint8_t* output) {
  size_t skip = from % kBlock;
  uint64_t block = from / kBlock + 1;
  while (length > 0) {
    Wiped<kBlock> counter;
    memcpy(counter.bytes, first, kBlock);
    size_t piece = length;
    if (in_32_bits) {
      const uint32_t number = GetU32(first + 12) + static_cast<uint32_t>(block);
      const uint64_t left = ((uint64_t{1} << 32) - number) * kBlock - skip;
      piece = static_cast<size_t>(std::min<uint64_t>(piece, left));
      PutU32(counter.bytes + 12, number);
    } else {
      uint64_t carry = block;
      for (size_t i = kBlock; i-- > 0 && carry > 0;) {
        carry += counter.bytes[i];
        counter.bytes[i] = static_cast<uint8_t>(carry);
        carry >>= 8;
      }
    }
    Result<EvpCipherCtxPtr> context = BlockContext(key, CipherMode::kCtr, counter.bytes);
    if (!context.ok()) return context.status();
    Wiped<kBlock> skipped;
    int written = 0;
    if ((skip > 0 && EVP_CipherUpdate(context.value().get(), skipped.bytes, &written, skipped.bytes, static_cast<int>(skip)) != 1) ||
        EVP_CipherUpdate(context.value().get(), output, &written, input, static_cast<int>(piece)) != 1) {
      return CryptoFailure("CTR");
    }
    block += (skip + piece) / kBlock;
    skip = (skip + piece) % kBlock;
    input += piece;
    output += piece;
    length -= piece;
  }
  return {};
}

static Element Sum(const Element& a, const Element& b) { return {a.high ^ b.high, a.low ^ b.low}; }
Element LoadElement(const uint8_t bytes[kBlock]) { return {GetU64(bytes), GetU64(bytes + 8)}; }
void StoreElement(const Element& element, uint8_t bytes[kBlock]) {
  PutU64(bytes, element.high);
  PutU64(bytes + 8, element.low);
}

// SP 800-38D, 6.3, algorithm 1: X . Y with Z(i+1) = Zi xor (xi ? Vi : 0) and
// V(i+1) = Vi >> 1 xor (lsb(Vi) ? R : 0), where R = 11100001 || 0^120.
// Takes as long whatever the bits are.
static Element Product(const Element& a, const Element& b) {
  Element product;
  Element factor = {b.high, b.low};
  for (size_t bit = 0; bit < 128; bit++) {
    const uint64_t taken = 0 - ((bit < 64 ? a.high >> (63 - bit) : a.low >> (127 - bit)) & 1);
    product.high ^= factor.high & taken;
    product.low ^= factor.low & taken;
    const uint64_t carry = 0 - (factor.low & 1);
    factor.low = factor.low >> 1 | factor.high << 63;
    factor.high = factor.high >> 1 ^ (carry & 0xe100000000000000);
  }
  return product;
}

// H^e by squares; one is 1 || 0^127.
static Element Power(const Element& base, uint64_t exponent) {
  Element power = {0x8000000000000000, 0};  // one
  Element square = {base.high, base.low};
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = Product(power, square);
    square = Product(square, square);
  }
  return power;
}

Result<std::unique_ptr<Ghash>> Ghash::Begin(const Key& key) {
  std::unique_ptr<Ghash> ghash(new Ghash(key));
  const uint8_t zeros[kBlock] = {};
  uint8_t one[kBlock] = {};
  one[kBlock - 1] = 1;
  Wiped<kBlock> block;
  DKE_RETURN_IF_ERROR(EncryptBlock(key, zeros, block.bytes));
  ghash->h_ = LoadElement(block.bytes);
  DKE_RETURN_IF_ERROR(EncryptBlock(key, one, block.bytes));
  ghash->mask_ = LoadElement(block.bytes);
  return ghash;
}

Status Ghash::Add(const uint8_t* data, size_t length) {
  if (length == 0) return {};
  const uint8_t nonce[12] = {};
  Wiped<kBlock> tag;
  int written = 0;
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  if (context == nullptr ||
      EVP_CipherInit_ex(context.get(), AesCipher(Row(CipherMode::kGcm), key_.secret.size()), nullptr, key_.secret.data(), nonce, 1) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &written, data, static_cast<int>(length)) != 1 ||
      EVP_CipherFinal_ex(context.get(), tag.bytes, &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kBlock, tag.bytes) != 1) {
    return CryptoFailure("GHASH");
  }
  // libcrypto's tag of A alone is T = GHASH(A || [len(A)] || 0^64) xor E(J0), so
  // GHASH(A) . H = T xor E(J0) xor ([len(A)] || 0^64) . H. `value` is the GHASH so far, times H;
  // with A behind it, n blocks, it becomes value . H^n xor GHASH(A) . H.
  const Element lengths = {length * 8, 0};
  const Element piece = Sum(Sum(LoadElement(tag.bytes), mask_), Product(lengths, h_));
  value = Sum(Product(value, Power(h_, length / kBlock)), piece);
  return {};
}

Status Ghash::AddPadded(const uint8_t* data, size_t length) {
  const size_t whole = length - length % kBlock;
  DKE_RETURN_IF_ERROR(Add(data, whole));
  if (whole == length) return {};
  Wiped<kBlock> block;
  memcpy(block.bytes, data + whole, length - whole);
  return Add(block.bytes, kBlock);
}

// 7.1, step 5: the block of both lengths is the last one: S = (Y xor len) . H, and `value` is
// Y . H.
Element Ghash::End(uint64_t first, uint64_t second) const { return Sum(value, Product({first, second}, h_)); }

Status GcmFirstBlock(const Key& key, const CipherParameters& parameters, uint8_t first[kBlock]) {
  memset(first, 0, kBlock);
  if (parameters.iv_length == 12) {
    memcpy(first, parameters.iv, 12);
    first[kBlock - 1] = 1;
    return {};
  }
  Result<std::unique_ptr<Ghash>> ghash = Ghash::Begin(key);
  if (!ghash.ok()) return ghash.status();
  DKE_RETURN_IF_ERROR(ghash.value()->AddPadded(parameters.iv, parameters.iv_length));
  StoreElement(ghash.value()->End(0, uint64_t{parameters.iv_length} * 8), first);
  return {};
}

}  // namespace dke
