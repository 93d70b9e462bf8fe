#include "algorithms.h"

namespace dke {
namespace {

constexpr DigestRow kDigests[] = {
    {Digest::kSha1, "sha1", "SHA1", 20, EVP_sha1},
    {Digest::kSha224, "sha224", "SHA2-224", 28, EVP_sha224},
    {Digest::kSha256, "sha256", "SHA2-256", 32, EVP_sha256},
    {Digest::kSha384, "sha384", "SHA2-384", 48, EVP_sha384},
    {Digest::kSha512, "sha512", "SHA2-512", 64, EVP_sha512},
};

constexpr CurveRow kCurves[] = {
    {Curve::kP256, "p256", "prime256v1", 256, 32},
    {Curve::kP384, "p384", "secp384r1", 384, 48},
    {Curve::kP521, "p521", "secp521r1", 521, 66},
};

constexpr CipherRow kCiphers[] = {
    {CipherMode::kEcb, "aes-ecb", 0, 0, true, false, EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb},
    {CipherMode::kCbc, "aes-cbc", 16, 16, true, false, EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
    {CipherMode::kCbcPad, "aes-cbc-pad", 16, 16, true, true, EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
    {CipherMode::kCtr, "aes-ctr", 16, 16, false, false, EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr},
    // SP 800-38D allows longer IVs; 256 bytes is what PKCS#11 allows and what libcrypto's context can hold is less: see
    // block_cipher.cc.
    {CipherMode::kGcm, "aes-gcm", 1, 256, false, false, EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm},
};

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

const DigestRow* FindDigest(std::string_view name) { return ByName(kDigests, name); }
const CurveRow* FindCurve(std::string_view name) { return ByName(kCurves, name); }
const CipherRow* FindCipher(std::string_view name) { return ByName(kCiphers, name); }
const KeyKindRow* FindKeyKind(std::string_view name) { return ByName(kKeyKinds, name); }

const CurveRow* FindCurveByGroup(std::string_view group) {
  for (const CurveRow& row : kCurves) {
    if (group == row.group) return &row;
  }
  return nullptr;
}

const KeyKindRow* FindKeyKind(uint8_t value) {
  for (const KeyKindRow& row : kKeyKinds) {
    if (static_cast<uint8_t>(row.kind) == value) return &row;
  }
  return nullptr;
}

const EVP_CIPHER* AesCipher(const CipherRow& row, size_t key_bytes) {
  switch (key_bytes) {
    case 16: return row.cipher128();
    case 24: return row.cipher192();
    case 32: return row.cipher256();
    default: return nullptr;
  }
}

}  // namespace dke
