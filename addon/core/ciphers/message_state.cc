#include "ciphers/message_state.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/bytes.h"

namespace dke {
namespace {

bool AllZero(const uint8_t* data, size_t size) {
  return std::all_of(data, data + size, [](uint8_t byte) { return byte == 0; });
}

Status Refused() { return BadArgument("the state of the part before is not one"); }

}  // namespace

Result<CipherState> CipherState::Parse(const CipherParameters& parameters, const uint8_t* in, size_t size) {
  if (size != kSize) return Refused();
  CipherState state;
  memcpy(state.chain, in, kBlock);
  memcpy(state.rest, in + kBlock, kBlock);
  state.total = GetU64(in + 2 * kBlock);
  state.aad_length = GetU64(in + 2 * kBlock + 8);
  const uint64_t most = parameters.mode == CipherMode::kGcm ? kMostGcm : parameters.data_length;
  if (state.total > most || state.aad_length > kMostAad) return Refused();
  if (!AllZero(state.rest + state.rest_length(), kBlock - state.rest_length())) return Refused();
  return state;
}

void CipherState::Save(uint8_t out[kSize]) const {
  DKE_ASSERT(total <= kMostGcm && AllZero(rest + rest_length(), kBlock - rest_length()));
  memcpy(out, chain, kBlock);
  memcpy(out + kBlock, rest, kBlock);
  PutU64(out + 2 * kBlock, total);
  PutU64(out + 2 * kBlock + 8, aad_length);
}

Result<MacState> MacState::Parse(const MacRow& row, const uint8_t* in, size_t size) {
  if (size != Size(row)) return Refused();
  MacState state;
  memcpy(state.chain, in, row.chain);
  memcpy(state.rest, in + row.chain, row.block);
  state.total = GetU64(in + row.chain + row.block);
  if (state.total > kMostMac) return Refused();
  const size_t length = state.rest_length(row);
  if (!AllZero(state.rest + length, row.block - length)) return Refused();
  return state;
}

void MacState::Save(const MacRow& row, uint8_t* out) const {
  DKE_ASSERT(total <= kMostMac && row.chain <= sizeof chain && row.block <= sizeof rest);
  DKE_ASSERT(AllZero(rest + rest_length(row), row.block - rest_length(row)));
  memcpy(out, chain, row.chain);
  memcpy(out + row.chain, rest, row.block);
  PutU64(out + row.chain + row.block, total);
}

}  // namespace dke
