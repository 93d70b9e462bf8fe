#include "digests/kdf.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <algorithm>
#include <cstring>

namespace dke {
namespace {

struct KdfCtxDeleter {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

EVP_KDF* Argon2() {
  static EVP_KDF* kdf = EVP_KDF_fetch(nullptr, "ARGON2ID", nullptr);
  return kdf;
}

EVP_KDF* Hkdf() {
  static EVP_KDF* kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  return kdf;
}

}  // namespace

Status HkdfInto(Digest digest, const uint8_t* secret, size_t secret_length, const uint8_t* salt, size_t salt_length,
                const uint8_t* info, size_t info_length, uint8_t* output, size_t output_length, HkdfSteps steps) {
  if (output_length == 0 || output_length > 255 * Row(digest).bytes) return BadArgument("HKDF gives 1 to 255 digests of output");
  // libcrypto's limit.
  if (info_length > 32768) return BadArgument("the info of HKDF has at most 32 KiB");
  const size_t blocks = (output_length + Row(digest).bytes - 1) / Row(digest).bytes;
  if (blocks * info_length > kMostHashedInfo) return BadArgument("so long a key needs a shorter info");
  std::unique_ptr<EVP_KDF_CTX, KdfCtxDeleter> context(EVP_KDF_CTX_new(Hkdf()));
  if (steps == HkdfSteps::kExtract && output_length != Row(digest).bytes) return BadArgument("HKDF's extraction gives one digest of output");
  int mode = steps == HkdfSteps::kBoth      ? EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND
             : steps == HkdfSteps::kExtract ? EVP_KDF_HKDF_MODE_EXTRACT_ONLY
                                            : EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  OSSL_PARAM params[6];
  size_t count = 0;
  params[count++] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
  params[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>(Row(digest).libcrypto), 0);
  params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<uint8_t*>(secret), secret_length);
  if (salt_length != 0) params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<uint8_t*>(salt), salt_length);
  if (info_length != 0) params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<uint8_t*>(info), info_length);
  params[count] = OSSL_PARAM_construct_end();
  if (context == nullptr || EVP_KDF_derive(context.get(), output, output_length, params) != 1) return CryptoFailure("HKDF");
  return {};
}

Result<KeyRef> HkdfKey(KeyRef ref, Digest digest, const uint8_t* salt, size_t salt_length, const uint8_t* info, size_t info_length,
                       KeyKind kind, size_t bytes, HkdfSteps steps) {
  if (bytes == 0 || bytes > 4096) return BadArgument("a secret key has 1 to 4096 bytes");
  Result<SecureBuffer> derived = SecureBuffer::Make(bytes);
  if (!derived.ok()) return derived.status();
  {
    KeyUse key(ref);
    if (!key) return BadKey();
    if (!key.is_secret()) return WrongKeyType();
    DKE_RETURN_IF_ERROR(HkdfInto(digest, key->secret.data(), key->secret.size(), salt, salt_length, info, info_length,
                                 derived.value().data(), bytes, steps));
  }
  return AddSecretKey(kind, derived.Take());
}

Result<KeyRef> Sp800108Key(KeyRef ref, const MacParameters& prf, const Sp800108& parameters, KeyKind kind, size_t bytes) {
  const size_t block = MacLength(prf);
  if (bytes == 0 || bytes > 4096) return BadArgument("a secret key has 1 to 4096 bytes");
  if (parameters.length > kMostSp800108 || parameters.iv_length > kMostSp800108) return BadArgument("SP 800-108 takes 4096 bytes of data here");
  const bool counts = parameters.counter_at.has_value();
  const bool feeds = parameters.previous_at.has_value();
  if (!counts && !feeds) return BadArgument("SP 800-108 needs a counter or the block before");
  if (counts && (*parameters.counter_at > parameters.length || parameters.counter_bytes < 1 || parameters.counter_bytes > 4)) {
    return BadArgument("a counter of SP 800-108 has 1 to 4 bytes");
  }
  if (feeds && *parameters.previous_at > parameters.length) return BadArgument("SP 800-108's parts do not fit");
  const uint64_t blocks = (bytes + block - 1) / block;
  if (counts && blocks >= uint64_t{1} << (8 * parameters.counter_bytes)) return BadArgument("the counter is too short for so long a key");

  const size_t most_previous = feeds ? std::max(block, parameters.iv_length) : 0;
  Result<SecureBuffer> derived = SecureBuffer::Make(blocks * block);
  Result<SecureBuffer> message = SecureBuffer::Make(parameters.length + parameters.counter_bytes + most_previous + 1);
  if (!derived.ok()) return derived.status();
  if (!message.ok()) return message.status();
  for (uint64_t i = 1; i <= blocks; i++) {
    uint8_t* const to = message.value().data();
    size_t length = 0;
    size_t taken = 0;
    const auto take_until = [&](size_t at) {
      if (at > taken) memcpy(to + length, parameters.data + taken, at - taken);
      length += at - taken;
      taken = at;
    };
    const auto put_counter = [&] {
      take_until(*parameters.counter_at);
      for (size_t byte = 0; byte < parameters.counter_bytes; byte++) {
        const size_t shift = parameters.little_endian ? byte : parameters.counter_bytes - 1 - byte;
        to[length++] = static_cast<uint8_t>(i >> (8 * shift));
      }
    };
    const auto put_previous = [&] {
      take_until(*parameters.previous_at);
      const uint8_t* previous = i == 1 ? parameters.iv : derived.value().data() + (i - 2) * block;
      const size_t size = i == 1 ? parameters.iv_length : block;
      if (size != 0) memcpy(to + length, previous, size);
      length += size;
    };
    const bool counter_first =
        counts && (!feeds || *parameters.counter_at < *parameters.previous_at ||
                   (*parameters.counter_at == *parameters.previous_at && parameters.counter_first));
    if (counter_first) put_counter();
    if (feeds) put_previous();
    if (counts && !counter_first) put_counter();
    take_until(parameters.length);
    Result<size_t> written = MacMessage(ref, prf, to, length, derived.value().data() + (i - 1) * block, block);
    if (!written.ok()) return written.status();
  }
  derived.value().Truncate(bytes);
  return AddSecretKey(kind, derived.Take());
}

Status ScryptInto(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost, uint32_t r,
                  uint32_t p, uint8_t* output, size_t output_length) {
  // libcrypto's own limit is 32 MiB, below what a passphrase needs today; and what a file asks for
  // must not take the machine down.
  constexpr uint64_t kMostMemory = uint64_t{1} << 30;
  if (cost < 1 || cost > 24 || r < 1 || r > 64 || p < 1 || p > 16) return BadArgument("scrypt's N, r or p is out of range");
  const uint64_t n = uint64_t{1} << cost;
  if (128 * r * (n + p + 2) > kMostMemory) return BadArgument("scrypt would take more than 1 GiB");
  if (EVP_PBE_scrypt(reinterpret_cast<const char*>(passphrase), passphrase_length, salt, salt_length, n, r, p, kMostMemory, output,
                     output_length) != 1) {
    return CryptoFailure("scrypt");
  }
  return {};
}

Result<LooseKey> ScryptKey(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                           uint32_t r, uint32_t p) {
  Result<SecureBuffer> derived = SecureBuffer::Make(32);
  if (!derived.ok()) return derived.status();
  DKE_RETURN_IF_ERROR(
      ScryptInto(passphrase, passphrase_length, salt, salt_length, cost, r, p, derived.value().data(), derived.value().size()));
  return LooseKey{KeyKind::kKek, derived.Take(), nullptr};
}

Result<SecureBuffer> Argon2id(const uint8_t* password, size_t password_length, const uint8_t* salt, size_t salt_length,
                              uint32_t memory, uint32_t passes, size_t tag_length) {
  constexpr uint32_t kMostMemory = uint32_t{1} << 20;
  if (memory < 8 || memory > kMostMemory || passes < 1 || passes > 100 || tag_length < 16 || tag_length > 64 || salt_length < 8)
    return BadArgument("a parameter of Argon2id is out of range");
  Result<SecureBuffer> tag = SecureBuffer::Make(tag_length);
  if (!tag.ok()) return tag.status();
  std::unique_ptr<EVP_KDF_CTX, KdfCtxDeleter> context(EVP_KDF_CTX_new(Argon2()));
  // libcrypto takes an empty password only as a pointer to something.
  static const uint8_t kNothing = 0;
  const uint8_t* const given = password_length == 0 ? &kNothing : password;
  uint32_t one = 1;
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, const_cast<uint8_t*>(given), password_length),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<uint8_t*>(salt), salt_length),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_ITER, &passes),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_ARGON2_MEMCOST, &memory),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_ARGON2_LANES, &one),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_THREADS, &one),
      OSSL_PARAM_construct_end(),
  };
  if (context == nullptr || EVP_KDF_derive(context.get(), tag.value().data(), tag_length, params) != 1) return CryptoFailure("Argon2id");
  return tag;
}

}  // namespace dke
