// What exists in a fixed list, one row each: digests, curves, ciphers, key kinds. Code asks the
// rows.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dke {

enum class Digest : uint8_t {
  kSha1,
  kSha224,
  kSha256,
  kSha384,
  kSha512,
  kSha512_224,
  kSha512_256,
  kSha3_224,
  kSha3_256,
  kSha3_384,
  kSha3_512,
};
constexpr size_t kDigestCount = 11;
// Bytes in a block of AES.
constexpr size_t kBlock = 16;
enum class Curve : uint8_t {
  kP224,
  kP256,
  kP384,
  kP521,
  kSecp256k1,
  kBrainpoolP256r1,
  kBrainpoolP384r1,
  kBrainpoolP512r1,
  kEd25519,
  kEd448,
  kX25519,
  kX448,
};
// How a key on a curve is encoded and used: points of short Weierstrass form, or rows of bytes (RFC
// 8410) that sign or that agree.
enum class CurveForm : uint8_t { kWeierstrass, kEdwards, kMontgomery };
enum class CipherMode : uint8_t { kEcb, kCbc, kCbcPad, kCtr, kGcm, kCcm };
constexpr size_t kCipherModeCount = 6;
enum class Direction : uint8_t { kEncrypt, kDecrypt };

// The byte values are written into key records (FORMAT.md): never reuse one.
enum class KeyKind : uint8_t {
  kAes = 1,
  kGeneric = 2,
  kKek = 3,
  kRsaPrivate = 4,
  kRsaPublic = 5,
  kEcPrivate = 6,
  kEcPublic = 7,
  kEd25519Private = 8,
  kEd25519Public = 9,
  kX25519Private = 10,
  kX25519Public = 11,
  kEd448Private = 12,
  kEd448Public = 13,
  kX448Private = 14,
  kX448Public = 15,
};

struct DigestRow {
  Digest digest;
  const char* name;        // as JavaScript writes it
  const char* libcrypto;   // as libcrypto names it
  size_t bytes;

  // Looked up in libcrypto once: EVP_sha256() and its like are looked up again at each use.
  const EVP_MD* md() const;
};

struct CurveRow {
  Curve curve;
  CurveForm form;
  const char* name;
  const char* group;   // as libcrypto names the group, or the key type where it has no groups
  int bits;            // of the field, in whole bytes where the curve is not one of Weierstrass form
  size_t field_bytes;  // of a coordinate, or of a whole key
  // Only for keys on this curve; all others have the kinds kEcPrivate and kEcPublic.
  KeyKind private_kind = KeyKind::kEcPrivate;
  KeyKind public_kind = KeyKind::kEcPublic;
};

struct CipherRow {
  CipherMode mode;
  const char* name;
  size_t iv_min;
  size_t iv_max;
  bool whole_blocks;  // input must be a multiple of 16 bytes (of the ciphertext, where padding is added)
  bool padded;
  const char* suffix;  // of libcrypto's name: AES-256-<suffix>
};

// HMAC with a digest (FIPS 198-1), or CMAC of AES (SP 800-38B).
struct MacRow {
  bool of_aes;        // takes AES keys only
  const char* libcrypto;
  Digest digest;      // of HMAC
  size_t bytes;       // of the MAC
  size_t block;       // what it takes at once
  size_t chain;       // what is between two blocks
  bool keeps_last;    // the last block is treated apart: it is kept until the end
  // Its place among the rows: HMAC with each digest in their order, then CMAC.
  size_t index;
};
constexpr size_t kMacCount = kDigestCount + 1;
constexpr size_t kLongestMacBlock = 144;
constexpr size_t kLongestMacChain = 200;

struct KeyKindRow {
  KeyKind kind;
  const char* name;
  bool secret;   // raw bytes
  bool is_private;  // an EVP_PKEY with a private half
};

const DigestRow& Row(Digest digest);
const CurveRow& Row(Curve curve);
const CipherRow& Row(CipherMode mode);
const KeyKindRow& Row(KeyKind kind);
const MacRow& HmacRow(Digest digest);
const MacRow& CmacRow();

// Null when there is no such row.
const DigestRow* FindDigest(std::string_view name);
const CurveRow* FindCurve(std::string_view name);
// A curve of Weierstrass form, by libcrypto's name of its group.
const CurveRow* FindCurveByGroup(std::string_view group);
// A curve of another form, by libcrypto's number of the key type (EVP_PKEY_ED25519).
const CurveRow* FindCurveByType(int type);
const CipherRow* FindCipher(std::string_view name);
const KeyKindRow* FindKeyKind(std::string_view name);
const KeyKindRow* FindKeyKind(uint8_t value);

// Looked up in libcrypto once. Null for a key size that AES does not have.
const EVP_CIPHER* AesCipher(const CipherRow& row, size_t key_bytes);

}  // namespace dke
