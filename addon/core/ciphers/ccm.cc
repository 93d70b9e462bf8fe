#include "ciphers/ccm.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "ciphers/mode_blocks.h"

namespace dke {

void CcmFirstBlock(const CipherParameters& parameters, uint8_t block[16]) {
  memset(block, 0, kBlock);
  block[0] = static_cast<uint8_t>(14 - parameters.iv_length);
  memcpy(block + 1, parameters.iv, parameters.iv_length);
}

std::vector<uint8_t> CcmFront(const CipherParameters& parameters) {
  const size_t nonce = parameters.iv_length;
  const uint64_t aad = parameters.aad_length;
  std::vector<uint8_t> front(kBlock);
  front[0] = static_cast<uint8_t>((aad > 0 ? 64 : 0) + 8 * ((parameters.tag_length - 2) / 2) + (14 - nonce));
  memcpy(front.data() + 1, parameters.iv, nonce);
  uint64_t length = parameters.data_length;
  for (size_t i = kBlock - 1; i > nonce; i--, length >>= 8) front[i] = static_cast<uint8_t>(length);
  if (aad == 0) return front;
  if (aad >= 0xff00) {
    front.insert(front.end(), {0xff, 0xfe});
    AppendU32(front, static_cast<uint32_t>(aad));
  } else {
    front.insert(front.end(), {static_cast<uint8_t>(aad >> 8), static_cast<uint8_t>(aad)});
  }
  front.insert(front.end(), parameters.aad, parameters.aad + aad);
  front.resize((front.size() + kBlock - 1) / kBlock * kBlock);
  return front;
}

CcmStream::~CcmStream() {
  Wipe(last_, sizeof last_);
  Wipe(mask_, sizeof mask_);
}

Result<std::unique_ptr<CcmStream>> CcmStream::Begin(const Key& key, Direction direction, const CipherParameters& parameters) {
  std::unique_ptr<CcmStream> stream(new CcmStream(direction));
  uint8_t counter[kBlock];
  const uint8_t zeros[kBlock] = {};
  CcmFirstBlock(parameters, counter);
  Result<EvpCipherCtxPtr> encryption = BlockContext(key, CipherMode::kCtr, counter);
  if (!encryption.ok()) return encryption.status();
  stream->counter_ = encryption.Take();
  Result<EvpCipherCtxPtr> chain = BlockContext(key, CipherMode::kCbc, zeros);
  if (!chain.ok()) return chain.status();
  stream->mac_ = chain.Take();
  int written = 0;
  if (EVP_CipherUpdate(stream->counter_.get(), stream->mask_, &written, zeros, sizeof zeros) != 1) return CryptoFailure("CCM");
  const std::vector<uint8_t> front = CcmFront(parameters);
  DKE_RETURN_IF_ERROR(stream->Mac(front.data(), front.size()));
  return stream;
}

Status CcmStream::Mac(const uint8_t* data, size_t length) {
  uint8_t chain[kChunk + kBlock];
  for (size_t at = 0; at < length;) {
    const size_t part = std::min(length - at, kChunk);
    int written = 0;
    if (EVP_CipherUpdate(mac_.get(), chain, &written, data + at, static_cast<int>(part)) != 1) return CryptoFailure("CCM");
    if (written > 0) memcpy(last_, chain + written - kBlock, kBlock);
    at += part;
  }
  macced_ += length;
  return {};
}

Status CcmStream::PadMac() {
  const uint8_t zeros[kBlock] = {};
  return Mac(zeros, (kBlock - macced_ % kBlock) % kBlock);
}

Status CcmStream::Update(const uint8_t* input, size_t length, uint8_t* output) {
  // In pieces that stay in the processor's cache between the two passes.
  for (size_t at = 0; at < length;) {
    const size_t part = std::min(length - at, kChunk);
    int written = 0;
    if (direction_ == Direction::kEncrypt) DKE_RETURN_IF_ERROR(Mac(input + at, part));
    if (EVP_CipherUpdate(counter_.get(), output + at, &written, input + at, static_cast<int>(part)) != 1) return CryptoFailure("CCM");
    if (direction_ == Direction::kDecrypt) DKE_RETURN_IF_ERROR(Mac(output + at, part));
    at += part;
  }
  return {};
}

Status CcmStream::Tag(uint8_t tag[16]) {
  DKE_RETURN_IF_ERROR(PadMac());
  for (size_t i = 0; i < kBlock; i++) tag[i] = last_[i] ^ mask_[i];
  return {};
}

}  // namespace dke
