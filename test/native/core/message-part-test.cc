// Messages part by part against libcrypto's answer for the whole: every mode and digest, odd
// lengths of parts, and states that were changed, mixed up or reset.
#include "ciphers/part_state.h"

#include <algorithm>

#include "base/bytes.h"
#include "ciphers/message_state.h"
#include "digests/kdf.h"
#include "support.h"

namespace dke {
namespace {

const ByteVector kOwner = {'a', 'p', 'p'};
const std::vector<size_t> kPieces = {1, 15, 16, 17, 64, 100, 144, 500};

MessagePart PartOf(const ByteVector& input, const ByteVector& state, bool last) {
  MessagePart part;
  part.state = state.data();
  part.state_length = state.size();
  part.last = last;
  part.input = input.data();
  part.input_length = input.size();
  return part;
}

// The key of the service under which the states of all these messages are sealed.
const ServiceKey& Service() {
  static const ServiceKey* const service = [] {
    const KeyRef kek = Secret(KeyKind::kKek, Sequence(77, 32));
    return new ServiceKey(Good(ServiceKey::Of(kek, Label::kMessagePart, kOwner.data(), kOwner.size())));
  }();
  return *service;
}

ByteVector Slice(const ByteVector& all, size_t from, size_t to) {
  return ByteVector(all.begin() + static_cast<long>(std::min(from, all.size())), all.begin() + static_cast<long>(std::min(to, all.size())));
}

Result<ByteVector> One(KeyRef key, PartUse use, CipherParameters parameters, const ByteVector& input, ByteVector& state, bool last) {
  // Only the first part has additional data.
  if (!state.empty()) parameters.aad_length = 0;
  ByteVector out(CipherPartLength(use, parameters, last, input.size()));
  Result<CipherPartDone> next = CipherPart(key, Service(), use, parameters, PartOf(input, state, last), out.data(), out.size());
  if (!next.ok()) return next.status();
  state = next.value().state;
  return out;
}

ByteVector InParts(KeyRef key, PartUse use, const CipherParameters& parameters, const ByteVector& input, size_t piece, size_t tag) {
  ByteVector state;
  ByteVector all;
  const size_t body = input.size() - tag;
  for (size_t at = 0; at < body; at += piece) {
    const ByteVector out = Good(One(key, use, parameters, Slice(input, at, std::min(at + piece, body)), state, false));
    assert_false(state.empty());
    all.insert(all.end(), out.begin(), out.end());
  }
  const ByteVector out = Good(One(key, use, parameters, Slice(input, body, input.size()), state, true));
  assert_true(state.empty());
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

ByteVector Whole(KeyRef key, Direction direction, const CipherParameters& parameters, const ByteVector& input) {
  ByteVector out(CipherLength(direction, parameters, input.size()));
  assert_int_equal(Good(CipherMessage(key, direction, parameters, input.data(), input.size(), out.data(), out.size())), out.size());
  return out;
}

CipherParameters Parameters(CipherMode mode, const ByteVector& iv, const ByteVector& aad, size_t tag, size_t data) {
  CipherParameters parameters{};
  parameters.mode = mode;
  if (!iv.empty()) memcpy(parameters.iv, iv.data(), iv.size());
  parameters.iv_length = iv.size();
  parameters.aad = aad.data();
  parameters.aad_length = aad.size();
  parameters.tag_length = tag;
  parameters.data_length = data;
  return parameters;
}

void Compare(CipherMode mode, size_t key_bytes, size_t iv, size_t aad_length, size_t tag, size_t length, size_t piece) {
  const KeyRef key = Secret(KeyKind::kAes, Sequence(static_cast<uint8_t>(7 * iv + length), key_bytes));
  const ByteVector aad = Sequence(3, aad_length);
  const ByteVector data = Sequence(static_cast<uint8_t>(length), length);
  const CipherParameters parameters = Parameters(mode, Sequence(9, iv), aad, tag, length);
  const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
  AssertBytes(InParts(key, PartUse::kEncrypt, parameters, data, piece, 0), sealed);
  AssertBytes(InParts(key, PartUse::kDecrypt, parameters, sealed, piece, tag), data);
  AssertBytes(InParts(key, PartUse::kCheck, parameters, sealed, piece, tag), ByteVector());
  ReleaseKey(key);
}

TEST(GcmPartsMakeTheMessage) {
  for (size_t iv : {1, 8, 12, 16, 60, 128})
    for (size_t aad : {0, 5, 16, 33, 70000})
      for (size_t length : {0, 1, 16, 100, 4097}) Compare(CipherMode::kGcm, 32, iv, aad, 16, length, length % 3 == 0 ? 37 : 1000);
  for (size_t key : {16, 24, 32})
    for (size_t tag : {12, 13, 14, 15, 16})
      for (size_t piece : kPieces) Compare(CipherMode::kGcm, key, 12, 20, tag, 400, piece);
  Compare(CipherMode::kGcm, 32, 12, 20, 16, 70001, 16384);
}

TEST(CcmPartsMakeTheMessage) {
  for (size_t nonce = 7; nonce <= 13; nonce++)
    for (size_t aad : {0, 5, 14, 30, 65279, 65280})
      for (size_t length : {0, 1, 16, 100, 4097}) Compare(CipherMode::kCcm, 16, nonce, aad, 16, length, length % 3 == 0 ? 37 : 1000);
  for (size_t key : {16, 24, 32})
    for (size_t tag : {4, 6, 8, 10, 12, 14, 16})
      for (size_t piece : kPieces) Compare(CipherMode::kCcm, key, 11, 20, tag, 400, piece);
}

// The counter of GCM has 32 bits, and starts anywhere where the IV has not 12 bytes. An IV is
// looked for whose counter runs over soon.
TEST(TheCounterOfGcmRunsOver) {
  const KeyRef key = Secret(KeyKind::kAes, Sequence(1, 16));
  const CipherParameters ecb = Parameters(CipherMode::kEcb, {}, {}, 16, 0);
  CipherParameters parameters = Parameters(CipherMode::kGcm, Sequence(0, 16), {}, 16, 0);
  const ByteVector block(16, 0);
  uint32_t left = 0;
  for (uint32_t number = 0; left == 0 || left > 60000; number++) {
    memcpy(parameters.iv, &number, sizeof number);
    const ByteVector first = Slice(Whole(key, Direction::kEncrypt, parameters, block), 0, 16);
    const ByteVector counter = Whole(key, Direction::kDecrypt, ecb, first);
    left = 0 - (uint32_t{counter[12]} << 24 | uint32_t{counter[13]} << 16 | uint32_t{counter[14]} << 8 | counter[15]);
  }
  const ByteVector data = Sequence(3, size_t{left} * 16 + 5000);
  const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
  for (size_t piece : {size_t{4099}, size_t{left} * 16 - 5, size_t{left} * 16, data.size()}) {
    AssertBytes(InParts(key, PartUse::kEncrypt, parameters, data, piece, 0), sealed);
    AssertBytes(InParts(key, PartUse::kDecrypt, parameters, sealed, piece, 16), data);
  }
}

TEST(WhatIsChangedDoesNotAuthenticate) {
  const KeyRef key = Secret(KeyKind::kAes, Sequence(1, 32));
  const ByteVector data = Sequence(5, 300);
  for (CipherMode mode : {CipherMode::kGcm, CipherMode::kCcm}) {
    const ByteVector aad = Sequence(2, 9);
    const CipherParameters parameters = Parameters(mode, Sequence(9, 12), aad, 16, data.size());
    const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
    for (size_t at : {size_t{0}, size_t{150}, size_t{299}, size_t{300}, size_t{315}}) {
      for (PartUse use : {PartUse::kCheck, PartUse::kDecrypt}) {
        ByteVector changed = sealed;
        changed[at] ^= 4;
        ByteVector state;
        (void)Good(One(key, use, parameters, Slice(changed, 0, 200), state, false));
        const ByteVector before = state;
        Refused(One(key, use, parameters, Slice(changed, 200, 316), state, true), Code::kAuthenticationFailed);
        state = before;
        if (at >= 200) (void)Good(One(key, use, parameters, Slice(sealed, 200, 316), state, true));
      }
    }
  }
}

TEST(AStateOpensOnlyWhereItBelongs) {
  const KeyRef key = Secret(KeyKind::kAes, Sequence(1, 32));
  const KeyRef other = Secret(KeyKind::kAes, Sequence(2, 32));
  const CipherParameters parameters = Parameters(CipherMode::kGcm, Sequence(9, 12), {}, 16, 0);
  const ByteVector data = Sequence(5, 100);
  ByteVector state;
  (void)Good(One(key, PartUse::kEncrypt, parameters, data, state, false));
  // Twice the same is the same.
  ByteVector again;
  (void)Good(One(key, PartUse::kEncrypt, parameters, data, again, false));
  AssertBytes(again, state);
  const auto refused = [&](KeyRef with, PartUse use, const CipherParameters& changed, ByteVector from) {
    Refused(One(with, use, changed, data, from, false), Code::kBadArgument);
  };
  refused(other, PartUse::kEncrypt, parameters, state);
  refused(key, PartUse::kDecrypt, parameters, state);
  refused(key, PartUse::kCheck, parameters, state);
  for (size_t at = 0; at < state.size(); at++) {
    ByteVector changed = state;
    changed[at] ^= 1;
    refused(key, PartUse::kEncrypt, parameters, changed);
  }
  refused(key, PartUse::kEncrypt, parameters, Slice(state, 0, state.size() - 1));
  CipherParameters elsewhere = parameters;
  elsewhere.iv[3] ^= 1;
  refused(key, PartUse::kEncrypt, elsewhere, state);
  elsewhere = parameters;
  elsewhere.tag_length = 12;
  refused(key, PartUse::kEncrypt, elsewhere, state);
  elsewhere.mode = CipherMode::kCcm;
  elsewhere.data_length = 200;
  refused(key, PartUse::kEncrypt, elsewhere, state);
  MessagePart part = PartOf(data, state, false);
  ByteVector out(data.size());
  // Another owner, another tenant, another purpose: another key of the service.
  const KeyRef kek = Secret(KeyKind::kKek, Sequence(77, 32));
  const KeyRef other_kek = Secret(KeyKind::kKek, Sequence(78, 32));
  const auto refused_under = [&](KeyRef from, Label label, size_t owner) {
    const ServiceKey service = Good(ServiceKey::Of(from, label, kOwner.data(), owner));
    Refused(CipherPart(key, service, PartUse::kEncrypt, parameters, part, out.data(), out.size()), Code::kBadArgument);
  };
  refused_under(kek, Label::kMessagePart, kOwner.size() - 1);
  refused_under(other_kek, Label::kMessagePart, kOwner.size());
  refused_under(kek, Label::kHedge, kOwner.size());
  Refused(CipherPart(key, Service(), PartUse::kEncrypt, parameters, part, out.data(), out.size() - 1), Code::kBufferTooSmall);
  Refused(MacPart(key, Service(), MacParameters(), part), Code::kBadArgument);
  // CCM includes the length of the message.
  const CipherParameters ccm = Parameters(CipherMode::kCcm, Sequence(9, 12), {}, 16, 150);
  ByteVector ccm_state;
  (void)Good(One(key, PartUse::kEncrypt, ccm, data, ccm_state, false));
  const ByteVector kept = ccm_state;
  Refused(One(key, PartUse::kEncrypt, ccm, data, ccm_state, false), Code::kDataLength);
  ccm_state = kept;
  Refused(One(key, PartUse::kEncrypt, ccm, Slice(data, 0, 49), ccm_state, true), Code::kDataLength);
}

TEST(MacsOfPartsAreMacsOfTheWhole) {
  const auto compare = [](KeyRef key, const MacParameters& parameters, size_t length, size_t piece) {
    const ByteVector data = Sequence(static_cast<uint8_t>(length), length);
    ByteVector whole(MacLength(parameters));
    assert_int_equal(Good(MacMessage(key, parameters, data.data(), data.size(), whole.data(), whole.size())), whole.size());
    ByteVector state;
    size_t at = 0;
    for (; length - at > piece; at += piece) state = Good(MacPart(key, Service(), parameters, PartOf(Slice(data, at, at + piece), state, false)));
    AssertBytes(Good(MacPart(key, Service(), parameters, PartOf(Slice(data, at, length), state, true))), whole);
    // An end without data.
    state.clear();
    for (at = 0; at < length; at += piece) state = Good(MacPart(key, Service(), parameters, PartOf(Slice(data, at, at + piece), state, false)));
    AssertBytes(Good(MacPart(key, Service(), parameters, PartOf({}, state, true))), whole);
  };
  for (size_t digest = 0; digest < kDigestCount; digest++) {
    MacParameters parameters;
    parameters.digest = static_cast<Digest>(digest);
    for (size_t key_bytes : {1, 20, 64, 65, 128, 129, 144, 145, 512}) {
      const KeyRef key = Secret(KeyKind::kGeneric, Sequence(static_cast<uint8_t>(key_bytes), key_bytes));
      for (size_t piece : kPieces) compare(key, parameters, 401, piece);
      for (size_t length : {0, 1, 63, 64, 65, 128, 136, 143, 144, 145, 288}) compare(key, parameters, length, 72);
      ReleaseKey(key);
    }
  }
  MacParameters cmac;
  cmac.cmac = true;
  for (size_t key_bytes : {16, 24, 32}) {
    const KeyRef key = Secret(KeyKind::kAes, Sequence(4, key_bytes));
    for (size_t piece : kPieces) compare(key, cmac, 401, piece);
    for (size_t length = 0; length < 70; length++) compare(key, cmac, length, 16);
    for (size_t length = 0; length < 70; length++) compare(key, cmac, length, 7);
    ReleaseKey(key);
  }
}

// What a caller could seal who knew the key of the service: each relation that a state must have,
// violated.
TEST(AStateThatIsNotOneIsRefused) {
  const CipherParameters gcm = Parameters(CipherMode::kGcm, Sequence(9, 12), {}, 16, 0);
  const CipherParameters ccm = Parameters(CipherMode::kCcm, Sequence(9, 12), {}, 16, 100000);
  const auto parsed = [](const CipherParameters& parameters, size_t size, uint64_t total, uint64_t aad, size_t dirty) {
    ByteVector plain(size);
    if (size >= CipherState::kSize) {
      PutU64(plain.data() + 32, total);
      PutU64(plain.data() + 40, aad);
      if (dirty < kBlock) plain[16 + dirty] = 1;
    }
    return CipherState::Parse(parameters, plain.data(), plain.size());
  };
  constexpr size_t kClean = kBlock;
  assert_int_equal(Good(parsed(gcm, CipherState::kSize, 17, 5, 0)).rest_length(), 1);
  for (size_t size : {size_t{0}, CipherState::kSize - 1, CipherState::kSize + 1}) Refused(parsed(gcm, size, 0, 0, kClean), Code::kBadArgument);
  for (uint64_t total : {kMostGcm + 1, uint64_t{1} << 63, ~uint64_t{0}}) Refused(parsed(gcm, CipherState::kSize, total, 0, kClean), Code::kBadArgument);
  Refused(parsed(ccm, CipherState::kSize, 100001, 0, kClean), Code::kBadArgument);
  Refused(parsed(gcm, CipherState::kSize, 0, ~uint64_t{0}, kClean), Code::kBadArgument);
  // Bytes behind what is kept.
  Refused(parsed(gcm, CipherState::kSize, 17, 0, 1), Code::kBadArgument);
  Refused(parsed(ccm, CipherState::kSize, 32, 0, 0), Code::kBadArgument);
  for (size_t i = 0; i < kMacCount; i++) {
    const MacRow& row = i == kDigestCount ? CmacRow() : HmacRow(static_cast<Digest>(i));
    const ByteVector plain(MacState::Size(row), 0);
    const auto with = [&](uint64_t total, size_t dirty) {
      ByteVector changed = plain;
      if (dirty < row.block) changed[row.chain + dirty] = 1;
      PutU64(changed.data() + row.chain + row.block, total);
      return MacState::Parse(row, changed.data(), changed.size());
    };
    assert_int_equal(Good(with(row.block, row.block)).rest_length(row), row.keeps_last ? row.block : 0);
    Refused(with(kMostMac + 1, row.block), Code::kBadArgument);
    Refused(with(~uint64_t{0}, row.block), Code::kBadArgument);
    Refused(with(3, 3), Code::kBadArgument);
    Refused(MacState::Parse(row, plain.data(), plain.size() - 1), Code::kBadArgument);
  }
  // The largest totals that parse stay within bounds with the largest parts.
  CipherState state = Good(parsed(gcm, CipherState::kSize, kMostGcm, 0, kClean));
  uint8_t saved[CipherState::kSize];
  state.Save(saved);
  assert_int_equal(Good(CipherState::Parse(gcm, saved, sizeof saved)).total, kMostGcm);
}

// The caller knows the key of the message, and everything that can be derived from it.
TEST(ATokenKeySealsNoState) {
  const ByteVector value = Sequence(1, 32);
  const KeyRef key = Secret(KeyKind::kAes, value);
  for (const KeyKind kind : {KeyKind::kAes, KeyKind::kGeneric}) {
    Refused(ServiceKey::Of(Secret(kind, value), Label::kMessagePart, kOwner.data(), kOwner.size()), Code::kKeyType);
  }
  const CipherParameters gcm = Parameters(CipherMode::kGcm, Sequence(9, 12), {}, 16, 0);
  // An older version sealed states in this way: under HKDF of the key.
  ByteVector binding = {1, 1, static_cast<uint8_t>(CipherMode::kGcm), 16, 0, 0, 0, 0, 0, 0, 0, 0};
  AppendField(binding, gcm.iv, 12);
  AppendField(binding, kOwner.data(), kOwner.size());
  ByteVector plain(49, 0x41);
  plain[32] = 200;
  memset(plain.data() + 33, 0, 16);
  const ByteVector salt = Sequence(7, 32);
  ByteVector seal_key(32);
  constexpr char kInfo[] = "dke message part: seal";
  Good(HkdfInto(Digest::kSha256, value.data(), 32, salt.data(), 32, reinterpret_cast<const uint8_t*>(kInfo), sizeof kInfo, seal_key.data(), 32));
  const CipherParameters sealing = Parameters(CipherMode::kGcm, ByteVector(12), binding, 16, 0);
  ByteVector state = salt;
  const ByteVector sealed = Whole(Secret(KeyKind::kAes, seal_key), Direction::kEncrypt, sealing, plain);
  state.insert(state.end(), sealed.begin(), sealed.end());
  const ByteVector input = Sequence(0, 60000);
  Refused(One(key, PartUse::kEncrypt, gcm, input, state, false), Code::kBadArgument);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
