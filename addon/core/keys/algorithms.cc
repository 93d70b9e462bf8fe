#include "keys/algorithms.h"

#include <array>
#include <string>

namespace dke {
namespace {

constexpr DigestRow kDigests[] = {
    {Digest::kSha1, "sha1", "SHA1", 20},
    {Digest::kSha224, "sha224", "SHA2-224", 28},
    {Digest::kSha256, "sha256", "SHA2-256", 32},
    {Digest::kSha384, "sha384", "SHA2-384", 48},
    {Digest::kSha512, "sha512", "SHA2-512", 64},
    {Digest::kSha512_224, "sha512-224", "SHA2-512/224", 28},
    {Digest::kSha512_256, "sha512-256", "SHA2-512/256", 32},
    {Digest::kSha3_224, "sha3-224", "SHA3-224", 28},
    {Digest::kSha3_256, "sha3-256", "SHA3-256", 32},
    {Digest::kSha3_384, "sha3-384", "SHA3-384", 48},
    {Digest::kSha3_512, "sha3-512", "SHA3-512", 64},
};
static_assert(std::size(kDigests) == kDigestCount);

constexpr CurveRow kCurves[] = {
    {Curve::kP224, CurveForm::kWeierstrass, "p224", "secp224r1", 224, 28},
    {Curve::kP256, CurveForm::kWeierstrass, "p256", "prime256v1", 256, 32},
    {Curve::kP384, CurveForm::kWeierstrass, "p384", "secp384r1", 384, 48},
    {Curve::kP521, CurveForm::kWeierstrass, "p521", "secp521r1", 521, 66},
    {Curve::kSecp256k1, CurveForm::kWeierstrass, "secp256k1", "secp256k1", 256, 32},
    {Curve::kBrainpoolP256r1, CurveForm::kWeierstrass, "brainpool-p256r1", "brainpoolP256r1", 256, 32},
    {Curve::kBrainpoolP384r1, CurveForm::kWeierstrass, "brainpool-p384r1", "brainpoolP384r1", 384, 48},
    {Curve::kBrainpoolP512r1, CurveForm::kWeierstrass, "brainpool-p512r1", "brainpoolP512r1", 512, 64},
    {Curve::kEd25519, CurveForm::kEdwards, "ed25519", "ED25519", 256, 32, KeyKind::kEd25519Private, KeyKind::kEd25519Public},
    {Curve::kEd448, CurveForm::kEdwards, "ed448", "ED448", 448, 57, KeyKind::kEd448Private, KeyKind::kEd448Public},
    {Curve::kX25519, CurveForm::kMontgomery, "x25519", "X25519", 256, 32, KeyKind::kX25519Private, KeyKind::kX25519Public},
    {Curve::kX448, CurveForm::kMontgomery, "x448", "X448", 448, 56, KeyKind::kX448Private, KeyKind::kX448Public},
};

constexpr CipherRow kCiphers[] = {
    {CipherMode::kEcb, "aes-ecb", 0, 0, true, false, "ECB"},
    {CipherMode::kCbc, "aes-cbc", 16, 16, true, false, "CBC"},
    {CipherMode::kCbcPad, "aes-cbc-pad", 16, 16, true, true, "CBC"},
    {CipherMode::kCtr, "aes-ctr", 16, 16, false, false, "CTR"},
    // SP 800-38D allows longer IVs, and PKCS#11 256 bytes: this is what libcrypto's context holds.
    {CipherMode::kGcm, "aes-gcm", 1, 128, false, false, "GCM"},
    {CipherMode::kCcm, "aes-ccm", 7, 13, false, false, "CCM"},
};
static_assert(std::size(kCiphers) == kCipherModeCount);

constexpr MacRow Hmac(Digest digest, size_t block, size_t chain) {
  const size_t index = static_cast<size_t>(digest);
  return {false, "HMAC", digest, kDigests[index].bytes, block, chain, false, index};
}
constexpr MacRow kMacs[] = {
    Hmac(Digest::kSha1, 64, 20),
    Hmac(Digest::kSha224, 64, 32),
    Hmac(Digest::kSha256, 64, 32),
    Hmac(Digest::kSha384, 128, 64),
    Hmac(Digest::kSha512, 128, 64),
    Hmac(Digest::kSha512_224, 128, 64),
    Hmac(Digest::kSha512_256, 128, 64),
    Hmac(Digest::kSha3_224, 144, 200),
    Hmac(Digest::kSha3_256, 136, 200),
    Hmac(Digest::kSha3_384, 104, 200),
    Hmac(Digest::kSha3_512, 72, 200),
    {true, "CMAC", Digest::kSha256, kBlock, kBlock, kBlock, true, kDigestCount},
};
static_assert(std::size(kMacs) == kMacCount);

constexpr KeyKindRow kKeyKinds[] = {
    {KeyKind::kAes, "aes", true, false},
    {KeyKind::kGeneric, "generic", true, false},
    {KeyKind::kKek, "kek", true, false},
    {KeyKind::kRsaPrivate, "rsa-private", false, true},
    {KeyKind::kRsaPublic, "rsa-public", false, false},
    {KeyKind::kEcPrivate, "ec-private", false, true},
    {KeyKind::kEcPublic, "ec-public", false, false},
    {KeyKind::kEd25519Private, "ed25519-private", false, true},
    {KeyKind::kEd25519Public, "ed25519-public", false, false},
    {KeyKind::kX25519Private, "x25519-private", false, true},
    {KeyKind::kX25519Public, "x25519-public", false, false},
    {KeyKind::kEd448Private, "ed448-private", false, true},
    {KeyKind::kEd448Public, "ed448-public", false, false},
    {KeyKind::kX448Private, "x448-private", false, true},
    {KeyKind::kX448Public, "x448-public", false, false},
};

template <typename T, size_t N>
const T* ByName(const T (&rows)[N], std::string_view name) {
  for (const T& row : rows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace

// The enumerations count from 0 in the order of the rows (key kinds from 1).
const DigestRow& Row(Digest digest) { return kDigests[static_cast<size_t>(digest)]; }
const CurveRow& Row(Curve curve) { return kCurves[static_cast<size_t>(curve)]; }
const CipherRow& Row(CipherMode mode) { return kCiphers[static_cast<size_t>(mode)]; }
const KeyKindRow& Row(KeyKind kind) { return kKeyKinds[static_cast<size_t>(kind) - 1]; }
const MacRow& HmacRow(Digest digest) { return kMacs[static_cast<size_t>(digest)]; }
const MacRow& CmacRow() { return kMacs[kDigestCount]; }

const DigestRow* FindDigest(std::string_view name) { return ByName(kDigests, name); }
const CurveRow* FindCurve(std::string_view name) { return ByName(kCurves, name); }
const CipherRow* FindCipher(std::string_view name) { return ByName(kCiphers, name); }
const KeyKindRow* FindKeyKind(std::string_view name) { return ByName(kKeyKinds, name); }

const CurveRow* FindCurveByGroup(std::string_view group) {
  for (const CurveRow& row : kCurves) {
    if (row.form == CurveForm::kWeierstrass && group == row.group) return &row;
  }
  return nullptr;
}

const CurveRow* FindCurveByType(int type) {
  switch (type) {
    case EVP_PKEY_ED25519:
      return &Row(Curve::kEd25519);
    case EVP_PKEY_ED448:
      return &Row(Curve::kEd448);
    case EVP_PKEY_X25519:
      return &Row(Curve::kX25519);
    case EVP_PKEY_X448:
      return &Row(Curve::kX448);
    default:
      return nullptr;
  }
}

const KeyKindRow* FindKeyKind(uint8_t value) {
  for (const KeyKindRow& row : kKeyKinds) {
    if (static_cast<uint8_t>(row.kind) == value) return &row;
  }
  return nullptr;
}

const EVP_MD* DigestRow::md() const {
  static const auto fetched = [] {
    std::array<const EVP_MD*, std::size(kDigests)> all{};
    for (const DigestRow& row : kDigests) all[static_cast<size_t>(row.digest)] = EVP_MD_fetch(nullptr, row.libcrypto, nullptr);
    return all;
  }();
  return fetched[static_cast<size_t>(digest)];
}

const EVP_CIPHER* AesCipher(const CipherRow& row, size_t key_bytes) {
  static const auto fetched = [] {
    std::array<std::array<const EVP_CIPHER*, 3>, std::size(kCiphers)> all{};
    for (const CipherRow& each : kCiphers) {
      for (size_t size = 0; size < 3; size++) {
        const std::string name = "AES-" + std::to_string(128 + 64 * size) + "-" + each.suffix;
        all[static_cast<size_t>(each.mode)][size] = EVP_CIPHER_fetch(nullptr, name.c_str(), nullptr);
      }
    }
    return all;
  }();
  if (key_bytes != 16 && key_bytes != 24 && key_bytes != 32) return nullptr;
  return fetched[static_cast<size_t>(row.mode)][key_bytes / 8 - 2];
}

}  // namespace dke
