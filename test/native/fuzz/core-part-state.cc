// Fuzzes the state between two parts of a message as it is behind the seal, as though its key were
// known: what `Parse` accepts is written back as it was, and the parts of the message that follow
// it run. The first byte chooses the algorithm, the second the lengths of the parts.
#include "ciphers/part_state.h"

#include <stdlib.h>
#include <string.h>

#include "ciphers/message_state.h"
#include "ciphers/mac_parts.h"

namespace {

using dke::KeyRef;

void Must(bool condition) {
  if (!condition) abort();
}

struct Fixture {
  KeyRef aes = 0;
  dke::KeyPtr key;
  std::vector<uint8_t> input;
  std::vector<uint8_t> output;

  Fixture() : input(1 << 14), output(1 << 14) {
    Must(dke::AdoptCryptoAllocations() && dke::InitializeMemory(size_t{4} << 20, true).ok());
    uint8_t value[32];
    for (uint8_t i = 0; i < 32; i++) value[i] = i;
    aes = dke::ImportSecret(dke::KeyKind::kAes, value, sizeof value).value();
    key = dke::FindKey(aes);
  }
};

void RunMac(Fixture& fixture, const dke::MacRow& row, const uint8_t* data, size_t size, size_t length, bool last) {
  dke::Result<dke::MacState> state = dke::MacState::Parse(row, data, size);
  if (!state.ok()) return;
  uint8_t saved[dke::MacState::kMost];
  state.value().Save(row, saved);
  Must(size == dke::MacState::Size(row) && memcmp(saved, data, size) == 0);
  dke::KeyUse key(fixture.key);
  auto parts = dke::MacParts::Begin(*key, row, state.value(), false);
  Must(parts.ok());
  if (!parts.value()->Update(fixture.input.data(), length).ok()) return;
  Must(state.value().rest_length(row) <= row.block);
  if (!last) {
    parts.value()->Keep();
    state.value().Save(row, saved);
    return;
  }
  // The buffer is exactly as long as the MAC, so that the sanitizer finds a write behind it.
  std::vector<uint8_t> mac(row.bytes);
  Must(parts.value()->End(mac.data()).ok());
}

void RunCipher(Fixture& fixture, dke::CipherMode mode, const uint8_t* data, size_t size, size_t length, bool last) {
  static const KeyRef kek = dke::GenerateSecret(dke::KeyKind::kKek, 32).value();
  static const dke::ServiceKey service = dke::ServiceKey::Of(kek, dke::Label::kMessagePart, nullptr, 0).Take();
  dke::CipherParameters parameters{};
  parameters.mode = mode;
  parameters.iv_length = 12;
  parameters.tag_length = 16;
  parameters.data_length = mode == dke::CipherMode::kCcm ? 100'000 : 0;
  dke::Result<dke::CipherState> state = dke::CipherState::Parse(parameters, data, size);
  if (!state.ok()) return;
  uint8_t saved[dke::CipherState::kSize];
  state.value().Save(saved);
  Must(size == sizeof saved && memcmp(saved, data, size) == 0);
  for (const dke::PartUse use : {dke::PartUse::kEncrypt, dke::PartUse::kDecrypt, dke::PartUse::kCheck}) {
    // Everything that a caller could do if it had the key of the service.
    const auto binding = dke::PartBinding(service, *fixture.key, use, parameters);
    const auto sealed = service.Seal(binding.value(), data, size);
    Must(binding.ok() && sealed.ok());
    const dke::MessagePart part{sealed.value().data(), sealed.value().size(), last, fixture.input.data(), length};
    (void)dke::CipherPart(fixture.aes, service, use, parameters, part, fixture.output.data(), fixture.output.size()).ok();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new Fixture;
  if (size < 2) return 0;
  const size_t algorithm = data[0] % (dke::kMacCount + 2);
  const bool last = (data[1] & 1) != 0;
  const size_t length = size_t{data[1]} * 37 % 5000;
  data += 2;
  size -= 2;
  if (algorithm < dke::kMacCount) {
    const dke::MacRow& row = algorithm == dke::kDigestCount ? dke::CmacRow() : dke::HmacRow(static_cast<dke::Digest>(algorithm));
    RunMac(*fixture, row, data, size, length, last);
  } else {
    RunCipher(*fixture, algorithm == dke::kMacCount ? dke::CipherMode::kGcm : dke::CipherMode::kCcm, data, size, length, last);
  }
  return 0;
}
