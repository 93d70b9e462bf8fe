// Fuzzes what callers hand to keys that are there: signatures and what is signed, plaintexts and
// ciphertexts of RSA, points, sealed and wrapped keys and data, numbers of an RSA key, sealed
// states. What is made of the input comes back as it was. The first byte chooses. Nothing is left
// behind in the key table or in the arena.
#include <stdlib.h>
#include <string.h>

#include "ciphers/service_seal.h"
#include "keys/rsa_numbers.h"
#include "public_key/agreement.h"
#include "public_key/rsa_encryption.h"
#include "public_key/signature.h"
#include "wrapping/hpke.h"
#include "wrapping/key_wrap.h"

namespace {

using dke::KeyRef;

template <typename T>
T Good(dke::Result<T> result) {
  if (!result.ok()) abort();
  return result.Take();
}

struct Fixture {
  KeyRef rsa = 0;
  KeyRef aes = 0;
  KeyRef hpke = 0;
  KeyRef kek = 0;
  KeyRef curves[4] = {};
  Fixture() {
    if (!dke::AdoptCryptoAllocations() || !dke::InitializeMemory(size_t{4} << 20, true).ok()) abort();
    rsa = Good(dke::GenerateRsa(2048));
    aes = Good(dke::GenerateAes(256));
    kek = Good(dke::GenerateSecret(dke::KeyKind::kKek, 32));
    hpke = Good(dke::GenerateHpkeKey());
    size_t at = 0;
    for (const dke::Curve curve : {dke::Curve::kP256, dke::Curve::kEd25519, dke::Curve::kX25519, dke::Curve::kX448}) {
      curves[at++] = Good(dke::GenerateEc(curve));
    }
  }
};

void Finish(const dke::Result<KeyRef>& made) {
  if (made.ok()) dke::ReleaseKey(made.value());
}

bool Is(const dke::SecureBuffer& found, const uint8_t* data, size_t size) {
  return found.size() == size && (size == 0 || memcmp(found.data(), data, size) == 0);
}

void Unwrap(const Fixture& fixture, const uint8_t* data, size_t size) {
  const dke::KeyWrapParameters padded{true, nullptr};
  (void)dke::UnwrapData(fixture.aes, data, size, padded).ok();
  for (const bool padding : {false, true}) {
    const dke::KeyWrapParameters parameters{padding, nullptr};
    const auto wrapped = dke::WrapData(fixture.aes, data, size, parameters);
    if (wrapped.ok() && !Is(Good(dke::UnwrapData(fixture.aes, wrapped.value().data(), wrapped.value().size(), parameters)), data, size)) abort();
  }
  (void)dke::UnwrapValue(fixture.aes, data, size, padded, dke::KeyKind::kGeneric, 0).ok();
  for (const dke::CipherMode mode : {dke::CipherMode::kCbc, dke::CipherMode::kCbcPad, dke::CipherMode::kGcm, dke::CipherMode::kCcm}) {
    dke::CipherParameters parameters{};
    parameters.mode = mode;
    parameters.iv_length = dke::Row(mode).iv_max == 16 ? 16 : 12;
    parameters.data_length = size < 16 ? 0 : size - 16;
    for (const dke::UnwrappedKind kind : {dke::UnwrappedKind(dke::KeyKind::kAes), dke::UnwrappedKind()}) {
      (void)dke::UnwrapCipherValue(fixture.aes, parameters, data, size, kind, 0).ok();
    }
  }
}

void Verify(const Fixture& fixture, const uint8_t* data, size_t size) {
  const uint8_t digest[32] = {};
  dke::SignatureParameters parameters{dke::SignatureAlgorithm::kRsaPkcs1, dke::Digest::kSha256};
  (void)dke::Verify(fixture.rsa, parameters, digest, sizeof digest, data, size).ok();
  (void)dke::Recover(fixture.rsa, data, size).ok();
  parameters.algorithm = dke::SignatureAlgorithm::kRsaPss;
  (void)dke::Verify(fixture.rsa, parameters, digest, sizeof digest, data, size).ok();
  parameters.algorithm = dke::SignatureAlgorithm::kEcdsa;
  for (const bool der : {false, true}) {
    parameters.der = der;
    (void)dke::Verify(fixture.curves[0], parameters, digest, sizeof digest, data, size).ok();
  }
  (void)dke::Verify(fixture.curves[1], {dke::SignatureAlgorithm::kEd25519, {}}, digest, sizeof digest, data, size).ok();
}

void Sign(const Fixture& fixture, const uint8_t* data, size_t size) {
  for (const dke::SignatureAlgorithm algorithm :
       {dke::SignatureAlgorithm::kRsaPkcs1, dke::SignatureAlgorithm::kRsaPss, dke::SignatureAlgorithm::kEcdsa, dke::SignatureAlgorithm::kEd25519}) {
    const dke::SignatureParameters parameters{algorithm, dke::Digest::kSha256};
    const bool is_rsa = algorithm == dke::SignatureAlgorithm::kRsaPkcs1 || algorithm == dke::SignatureAlgorithm::kRsaPss;
    const KeyRef key = is_rsa ? fixture.rsa : fixture.curves[algorithm == dke::SignatureAlgorithm::kEcdsa ? 0 : 1];
    const auto made = dke::Sign(key, parameters, data, size);
    if (made.ok() && !Good(dke::Verify(key, parameters, data, size, made.value().data(), made.value().size()))) abort();
  }
}

void Encrypt(const Fixture& fixture, const uint8_t* data, size_t size) {
  for (const dke::RsaPadding padding : {dke::RsaPadding::kOaep, dke::RsaPadding::kPkcs1}) {
    dke::RsaEncryptionParameters parameters;
    parameters.padding = padding;
    (void)dke::RsaDecrypt(fixture.rsa, parameters, data, size).ok();
    const auto made = dke::RsaEncrypt(fixture.rsa, parameters, data, size);
    if (made.ok() && !Is(Good(dke::RsaDecrypt(fixture.rsa, parameters, made.value().data(), made.value().size())), data, size)) abort();
  }
}

void Numbers(const uint8_t* data, size_t size) {
  const size_t part = size / 5;
  const auto number = [&](size_t at) { return dke::RsaNumber{data + at * part, part}; };
  (void)dke::CompleteRsaKey({number(0), number(1), number(2), number(3), number(4)}).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new Fixture;
  static const size_t keys = dke::KeyCount();
  static const size_t used = dke::KeyArenaStatus().used;
  if (size < 1 || size > 4096) return 0;
  const char what = static_cast<char>(*data++);
  size--;
  const dke::HpkeContext context{};
  switch (what) {
    case 's':
      Verify(*fixture, data, size);
      break;
    case 'S':
      Sign(*fixture, data, size);
      break;
    case 'd':
      Encrypt(*fixture, data, size);
      break;
    case 'e':
      for (const KeyRef key : fixture->curves) Finish(dke::Ecdh(key, data, size));
      break;
    case 'h':
      (void)dke::HpkeOpenKey(fixture->hpke, context, data, size, dke::KeyKind::kGeneric).ok();
      Finish(dke::HpkeOpenKek(fixture->hpke, context, data, size));
      (void)dke::HpkeSealKey(data, size, context, fixture->aes).ok();
      (void)dke::HpkeSealKek(data, size, context, fixture->kek).ok();
      break;
    case 'w':
      Unwrap(*fixture, data, size);
      break;
    case 'n':
      Numbers(data, size);
      break;
    case 'o': {
      const dke::ServiceKey service = Good(dke::ServiceKey::Of(fixture->kek, dke::Label::kMessagePart, nullptr, 0));
      if (service.Open({}, data, size).ok()) abort();
      break;
    }
    default:
      break;
  }
  if (dke::KeyCount() != keys || dke::KeyArenaStatus().used != used) abort();
  return 0;
}
