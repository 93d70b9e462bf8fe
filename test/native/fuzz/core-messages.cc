// Fuzzes what callers have enciphered, digested and derived, with parameters of their choice. A
// message comes to the same bytes in one piece, in an operation of several parts, and in parts
// whose state is sealed in between; it opens to what it was, and no changed one opens. The first
// byte chooses.
#include <stdlib.h>

#include <algorithm>
#include <memory>

#include "ciphers/part_state.h"
#include "digests/digest.h"
#include "digests/kdf.h"

namespace {

using ByteVector = std::vector<uint8_t>;
using dke::KeyRef;

void Must(bool condition) {
  if (!condition) abort();
}

struct Fixture {
  KeyRef aes = 0;
  KeyRef generic = 0;
  std::unique_ptr<dke::ServiceKey> service;
  Fixture() {
    Must(dke::AdoptCryptoAllocations() && dke::InitializeMemory(size_t{4} << 20, true).ok());
    aes = dke::GenerateAes(256).value();
    generic = dke::GenerateSecret(dke::KeyKind::kGeneric, 40).value();
    const KeyRef kek = dke::GenerateSecret(dke::KeyKind::kKek, 32).value();
    service = std::make_unique<dke::ServiceKey>(dke::ServiceKey::Of(kek, dke::Label::kMessagePart, nullptr, 0).Take());
  }
};

struct Input {
  const uint8_t* at;
  size_t left;

  size_t Byte() { return left == 0 ? 0 : (left--, *at++); }
  // Memory of its own, of this size exactly, so that what is read or written behind it is found.
  ByteVector Bytes(size_t length) {
    const size_t here = std::min(length, left);
    ByteVector out(at, at + here);
    at += here;
    left -= here;
    return out;
  }
};

// Where a message is cut.
struct Cuts {
  size_t chosen[2];
  explicit Cuts(Input& input) : chosen{input.Byte() * 17, input.Byte() * 17} {}
  size_t First(size_t length) const { return chosen[0] % (length + 1); }
  size_t Second(size_t length) const { return First(length) + chosen[1] % (length - First(length) + 1); }
  template <typename Step>
  bool Each(const ByteVector& data, const Step& step) const {
    const size_t ends[] = {First(data.size()), Second(data.size()), data.size()};
    size_t from = 0;
    for (size_t at = 0; at < 3; ++at) {
      // Memory of its own again.
      const ByteVector part(data.begin() + static_cast<ptrdiff_t>(from), data.begin() + static_cast<ptrdiff_t>(ends[at]));
      if (!step(part, at == 2)) return false;
      from = ends[at];
    }
    return true;
  }
};

struct Outcome {
  bool done = false;
  ByteVector bytes;
};

Outcome Whole(KeyRef key, dke::Direction direction, const dke::CipherParameters& parameters, const ByteVector& data) {
  Outcome outcome;
  outcome.bytes.resize(dke::CipherLength(direction, parameters, data.size()));
  const auto written = dke::CipherMessage(key, direction, parameters, data.data(), data.size(), outcome.bytes.data(), outcome.bytes.size());
  outcome.done = written.ok();
  if (written.ok()) outcome.bytes.resize(written.value());
  return outcome;
}

Outcome InOperation(KeyRef key, dke::Direction direction, const dke::CipherParameters& parameters, const ByteVector& data, const Cuts& cuts) {
  Outcome outcome;
  auto operation = dke::CipherOperation::Begin(key, direction, parameters);
  if (!operation.ok()) return outcome;
  const auto append = [&](const dke::Result<size_t>& written, ByteVector& room) {
    if (!written.ok()) return false;
    Must(written.value() <= room.size());
    outcome.bytes.insert(outcome.bytes.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(written.value()));
    return true;
  };
  outcome.done = cuts.Each(data, [&](const ByteVector& part, bool) {
    ByteVector room(operation.value()->UpdateLength(part.size()));
    return append(operation.value()->Update(part.data(), part.size(), room.data(), room.size()), room);
  });
  if (!outcome.done) return outcome;
  ByteVector room(operation.value()->FinalLength());
  outcome.done = append(operation.value()->Final(room.data(), room.size()), room);
  return outcome;
}

Outcome InSealedParts(const Fixture& fixture, dke::PartUse use, const dke::CipherParameters& parameters, const ByteVector& data, const Cuts& cuts) {
  Outcome outcome;
  ByteVector state;
  dke::CipherParameters now = parameters;
  outcome.done = cuts.Each(data, [&](const ByteVector& part, bool last) {
    const dke::MessagePart message{state.data(), state.size(), last, part.data(), part.size()};
    ByteVector room(dke::CipherPartLength(use, now, last, part.size()));
    auto done = dke::CipherPart(fixture.aes, *fixture.service, use, now, message, room.data(), room.size());
    if (!done.ok()) return false;
    Must(done.value().state.empty() == last);
    outcome.bytes.insert(outcome.bytes.end(), room.begin(), room.end());
    state = done.value().state;
    now.aad_length = 0;  // only the first part has them
    return true;
  });
  return outcome;
}

void Cipher(const Fixture& fixture, Input input) {
  dke::CipherParameters parameters{};
  parameters.mode = static_cast<dke::CipherMode>(input.Byte() % dke::kCipherModeCount);
  const ByteVector iv = input.Bytes(input.Byte() % (sizeof parameters.iv + 1));
  std::copy(iv.begin(), iv.end(), parameters.iv);
  parameters.iv_length = iv.size();
  parameters.tag_length = input.Byte() % 20;
  parameters.counter_bits = static_cast<int>(input.Byte() % 132);
  const size_t wrong = input.Byte();
  const size_t aad_length = input.Byte();
  const ByteVector aad = input.Bytes(aad_length);
  parameters.aad = aad.data();
  parameters.aad_length = aad.size();
  const Cuts cuts(input);
  const ByteVector message = input.Bytes(input.left);
  parameters.data_length = wrong == 0xff ? message.size() + 1 : message.size();

  const auto sealed = Whole(fixture.aes, dke::Direction::kEncrypt, parameters, message);
  const auto parted = InOperation(fixture.aes, dke::Direction::kEncrypt, parameters, message, cuts);
  Must(sealed.done == parted.done && (!sealed.done || sealed.bytes == parted.bytes));
  const bool authenticates = parameters.mode == dke::CipherMode::kGcm || parameters.mode == dke::CipherMode::kCcm;
  if (authenticates) {
    const auto states = InSealedParts(fixture, dke::PartUse::kEncrypt, parameters, message, cuts);
    Must(states.done == sealed.done && (!sealed.done || states.bytes == sealed.bytes));
  }
  if (!sealed.done) return;
  // Whatever a caller hands over to be opened, too.
  for (const ByteVector& given : {sealed.bytes, message}) {
    const auto opened = Whole(fixture.aes, dke::Direction::kDecrypt, parameters, given);
    const auto opened_parts = InOperation(fixture.aes, dke::Direction::kDecrypt, parameters, given, cuts);
    Must(opened.done == opened_parts.done && (!opened.done || opened.bytes == opened_parts.bytes));
  }
  const auto opened = Whole(fixture.aes, dke::Direction::kDecrypt, parameters, sealed.bytes);
  Must(opened.done && opened.bytes == message);
  if (!authenticates) return;
  const auto states = InSealedParts(fixture, dke::PartUse::kDecrypt, parameters, sealed.bytes, cuts);
  // The tag is the end of the last part.
  Must(states.done == (sealed.bytes.size() - cuts.Second(sealed.bytes.size()) >= parameters.tag_length));
  Must(!states.done || states.bytes == message);
  ByteVector changed = sealed.bytes;
  changed[wrong % changed.size()] ^= 0x40;
  Must(!Whole(fixture.aes, dke::Direction::kDecrypt, parameters, changed).done);
  Must(!InOperation(fixture.aes, dke::Direction::kDecrypt, parameters, changed, cuts).done);
  Must(!InSealedParts(fixture, dke::PartUse::kDecrypt, parameters, changed, cuts).done);
}

void Mac(const Fixture& fixture, Input input) {
  const size_t which = input.Byte();
  const dke::MacParameters parameters{which % dke::kMacCount == dke::kDigestCount, static_cast<dke::Digest>(which % dke::kDigestCount)};
  const KeyRef key = parameters.cmac ? fixture.aes : fixture.generic;
  const Cuts cuts(input);
  const ByteVector message = input.Bytes(input.left);
  ByteVector whole(dke::MacLength(parameters));
  Must(dke::MacMessage(key, parameters, message.data(), message.size(), whole.data(), whole.size()).value() == whole.size());
  auto operation = dke::MacOperation::Begin(key, parameters).Take();
  ByteVector state;
  Must(cuts.Each(message, [&](const ByteVector& part, bool last) {
    auto done = dke::MacPart(key, *fixture.service, parameters, {state.data(), state.size(), last, part.data(), part.size()});
    if (done.ok()) state = done.value();
    return done.ok() && operation->Update(part.data(), part.size()).ok();
  }));
  ByteVector parted(whole.size());
  Must(operation->Final(parted.data(), parted.size()).ok());
  Must(parted == whole && state == whole);
}

void Digest(Input input) {
  const auto digest = static_cast<dke::Digest>(input.Byte() % dke::kDigestCount);
  const Cuts cuts(input);
  const ByteVector message = input.Bytes(input.left);
  ByteVector whole(dke::Row(digest).bytes);
  ByteVector parted(whole.size());
  Must(dke::DigestMessage(digest, message.data(), message.size(), whole.data(), whole.size()).ok());
  auto operation = dke::DigestOperation::Begin(digest).Take();
  Must(cuts.Each(message, [&](const ByteVector& part, bool) { return operation->Update(part.data(), part.size()).ok(); }));
  Must(operation->Final(parted.data(), parted.size()).ok() && parted == whole);
}

void Finish(const dke::Result<KeyRef>& made, dke::KeyKind kind, size_t bytes) {
  if (!made.ok()) return;
  const dke::KeyPtr key = dke::FindKey(made.value());
  Must(key->description.kind == kind && key->secret.size() == bytes);
  dke::ReleaseKey(made.value());
}

void Derive(const Fixture& fixture, Input input) {
  const size_t which = input.Byte();
  const auto digest = static_cast<dke::Digest>(which % dke::kDigestCount);
  const dke::KeyKind kind = which % 2 == 0 ? dke::KeyKind::kGeneric : dke::KeyKind::kAes;
  const size_t bytes = input.Byte() * 17;
  const size_t counter = input.Byte();
  const ByteVector salt = input.Bytes(input.Byte());
  dke::Sp800108 fixed;
  fixed.counter_bytes = counter % 6;
  fixed.little_endian = (counter & 0x40) != 0;
  fixed.counter_first = (counter & 0x80) != 0;
  if (const size_t at = input.Byte(); at % 8 != 0) fixed.counter_at = at;
  if (const size_t at = input.Byte(); at % 2 != 0) fixed.previous_at = at;
  const ByteVector info = input.Bytes(input.left);
  fixed.data = info.data();
  fixed.length = info.size();
  fixed.iv = salt.data();
  fixed.iv_length = salt.size();
  for (const dke::HkdfSteps steps : {dke::HkdfSteps::kBoth, dke::HkdfSteps::kExtract, dke::HkdfSteps::kExpand}) {
    Finish(dke::HkdfKey(fixture.generic, digest, salt.data(), salt.size(), info.data(), info.size(), kind, bytes, steps), kind, bytes);
  }
  Finish(dke::Sp800108Key(fixture.generic, {false, digest}, fixed, kind, bytes), kind, bytes);
  Finish(dke::Sp800108Key(fixture.aes, {true, digest}, fixed, kind, bytes), kind, bytes);
  // Numbers of a file, of which most are refused.
  const uint32_t cost = counter < 0xf0 ? 1 : static_cast<uint32_t>(counter);
  // A parameter of Argon2id that is out of range is refused; the memory is kept small.
  const auto tag = dke::Argon2id(info.data(), info.size(), salt.data(), salt.size(), 8 + counter % 8, 1 + counter % 2, bytes);
  Must(tag.ok() == (salt.size() >= 8 && bytes >= 16 && bytes <= 64));
  const auto passphrase = dke::ScryptKey(info.data(), info.size(), salt.data(), salt.size(), cost, static_cast<uint32_t>(bytes), 1);
  Must(!passphrase.ok() || (cost == 1 && bytes > 0));
  for (const dke::CipherMode mode : {dke::CipherMode::kEcb, dke::CipherMode::kCbc}) {
    dke::CipherParameters parameters{};
    parameters.mode = mode;
    parameters.iv_length = mode == dke::CipherMode::kCbc ? dke::kBlock : 0;
    Finish(dke::DeriveByEncryption(fixture.aes, parameters, info.data(), info.size(), kind, bytes), kind, bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new Fixture;
  static const size_t keys = dke::KeyCount();
  static const size_t used = dke::KeyArenaStatus().used;
  if (size < 1 || size > 4096) return 0;
  const Input input{data + 1, size - 1};
  switch (*data % 4) {
    case 0:
      Cipher(*fixture, input);
      break;
    case 1:
      Mac(*fixture, input);
      break;
    case 2:
      Digest(input);
      break;
    default:
      Derive(*fixture, input);
  }
  Must(dke::KeyCount() == keys && dke::KeyArenaStatus().used == used);
  return 0;
}
