#include "xks/sigv4_keys.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>

#include "digests/digest.h"
#include "digests/mac.h"
#include "base/random.h"

namespace dke {

Result<KeyRef> SigV4SigningKey(KeyRef secret, const std::string& date, const std::string& region, const std::string& service) {
  Result<SecureBuffer> first = SecureBuffer::Make(1);
  {
    KeyUse key(secret);
    if (!key) return BadKey();
    if (!key.is_data_key()) return WrongKeyType();
    first = SecureBuffer::Make(4 + key->secret.size());
    if (!first.ok()) return first.status();
    memcpy(first.value().data(), "AWS4", 4);
    memcpy(first.value().data() + 4, key->secret.data(), key->secret.size());
  }
  Result<SecureBuffer> made = SecureBuffer::Make(32);
  if (!made.ok()) return made.status();
  uint8_t* chain = made.value().data();
  const std::string parts[] = {date, region, service, "aws4_request"};
  const uint8_t* key = first.value().data();
  size_t key_length = first.value().size();
  uint8_t next[32];
  for (const std::string& part : parts) {
    unsigned length = 0;
    if (HMAC(Row(Digest::kSha256).md(), key, static_cast<int>(key_length), reinterpret_cast<const uint8_t*>(part.data()), part.size(), next, &length) == nullptr) {
      return CryptoFailure("signing key");
    }
    memcpy(chain, next, 32);
    key = chain;
    key_length = 32;
  }
  Wipe(next, sizeof next);
  return AddSecretKey(KeyKind::kGeneric, made.Take());
}

namespace {

constexpr size_t kHexDigest = 64;

void WriteHex(const uint8_t (&digest)[32], char* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < sizeof digest; i++) {
    out[2 * i] = kHex[digest[i] >> 4];
    out[2 * i + 1] = kHex[digest[i] & 15];
  }
}

Status HexDigest(const void* data, size_t size, char* out) {
  uint8_t digest[32];
  const Result<size_t> written = DigestMessage(Digest::kSha256, static_cast<const uint8_t*>(data), size, digest, sizeof digest);
  if (!written.ok()) return written.status();
  WriteHex(digest, out);
  return {};
}

}  // namespace

Result<bool> SigV4Verify(KeyRef signing_key, const SigV4Request& request) {
  std::string canonical;
  canonical.reserve(request.head.size() + kHexDigest);
  canonical.append(request.head).append(kHexDigest, '0');
  char* const payload_hash = canonical.data() + request.head.size();
  DKE_RETURN_IF_ERROR(HexDigest(request.body, request.body_size, payload_hash));
  if (!request.stated_hash.empty() && request.stated_hash != std::string_view(payload_hash, kHexDigest)) return false;

  std::string string_to_sign;
  string_to_sign.reserve(request.scope.size() + kHexDigest);
  string_to_sign.append(request.scope).append(kHexDigest, '0');
  DKE_RETURN_IF_ERROR(HexDigest(canonical.data(), canonical.size(), string_to_sign.data() + request.scope.size()));

  uint8_t mac[32];
  Result<size_t> written = MacMessage(signing_key, MacParameters{false, Digest::kSha256},
                                      reinterpret_cast<const uint8_t*>(string_to_sign.data()), string_to_sign.size(), mac, sizeof mac);
  if (!written.ok()) return written.status();
  char expected[kHexDigest];
  WriteHex(mac, expected);
  const bool same = request.signature.size() == sizeof expected && CRYPTO_memcmp(expected, request.signature.data(), sizeof expected) == 0;
  Wipe(expected, sizeof expected);
  Wipe(mac, sizeof mac);
  return same;
}

Result<SecureBuffer> MakeSecretAccessKey() {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  Result<SecureBuffer> characters = SecureBuffer::Make(kSecretAccessKey);
  if (!characters.ok()) return characters;
  DKE_RETURN_IF_ERROR(RandomSecret(characters.value().data(), kSecretAccessKey));
  for (size_t i = 0; i < kSecretAccessKey; i++) {
    characters.value().data()[i] = static_cast<uint8_t>(kAlphabet[characters.value().data()[i] & 63]);
  }
  return characters;
}

}  // namespace dke
