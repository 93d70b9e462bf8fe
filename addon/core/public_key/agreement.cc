#include "public_key/agreement.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>

#include "digests/kdf.h"

namespace dke {
namespace {

// Most bytes of shared info, which is hashed once for each block of the key: 1 MiB for a key of
// 4,096 bytes would take 0.1 s. HKDF's info has the same limit.
constexpr size_t kMostSharedInfo = 32768;

// The peer's point as a key on the same curve, or null.
EvpPkeyPtr PeerKey(const CurveRow& curve, const uint8_t* point, size_t length) {
  // RFC 7748: every row of bytes is a point. One whose agreement is all zeros is refused when it is
  // derived.
  if (curve.form == CurveForm::kMontgomery) {
    return EvpPkeyPtr(EVP_PKEY_new_raw_public_key_ex(nullptr, curve.group, nullptr, point, length));
  }
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, const_cast<char*>(curve.group), 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, const_cast<uint8_t*>(point), length),
      OSSL_PARAM_construct_end(),
  };
  EvpPkeyCtxPtr maker(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* peer = nullptr;
  if (maker == nullptr || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
      EVP_PKEY_fromdata(maker.get(), &peer, EVP_PKEY_PUBLIC_KEY, params) != 1) {
    return nullptr;
  }
  EvpPkeyPtr owned(peer);
  EvpPkeyCtxPtr checker(EVP_PKEY_CTX_new(peer, nullptr));
  if (checker == nullptr || EVP_PKEY_public_check(checker.get()) != 1) return nullptr;
  return owned;
}

struct KdfDeleter {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

Status X963(const EcdhDerivation& derivation, const SecureBuffer& shared, SecureBuffer& out) {
  static EVP_KDF* kdf = EVP_KDF_fetch(nullptr, "X963KDF", nullptr);
  std::unique_ptr<EVP_KDF_CTX, KdfDeleter> context(EVP_KDF_CTX_new(kdf));
  OSSL_PARAM params[4];
  size_t count = 0;
  params[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>(Row(*derivation.kdf).libcrypto), 0);
  params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<uint8_t*>(shared.data()), shared.size());
  if (derivation.shared_info_length != 0) {
    params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<uint8_t*>(derivation.shared_info),
                                                        derivation.shared_info_length);
  }
  params[count] = OSSL_PARAM_construct_end();
  if (context == nullptr || EVP_KDF_derive(context.get(), out.data(), out.size(), params) != 1) return CryptoFailure("X9.63 KDF");
  return {};
}

Result<SecureBuffer> SharedSecret(KeyRef ref, const uint8_t* peer, size_t peer_length) {
  KeyUse key(ref);
  if (!key) return BadKey();
  const KeyDescription& description = key->description;
  if (description.curve == nullptr || description.curve->form == CurveForm::kEdwards || !Row(description.kind).is_private) return WrongKeyType();
  const CurveRow& curve = *description.curve;
  const bool fits = curve.form == CurveForm::kMontgomery ? peer_length == curve.field_bytes : peer_length == 1 + 2 * curve.field_bytes && peer[0] == 4;
  if (!fits) return BadArgument("the peer's point is not an uncompressed point of this curve");
  EvpPkeyPtr point = PeerKey(curve, peer, peer_length);
  EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(key->pkey.get(), nullptr));
  if (point == nullptr || context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer_ex(context.get(), point.get(), curve.form == CurveForm::kMontgomery ? 0 : 1) != 1) {
    (void)CryptoFailure("");
    return BadArgument("the peer's point is not on the curve");
  }
  Result<SecureBuffer> shared = SecureBuffer::Make(curve.field_bytes);
  if (!shared.ok()) return shared.status();
  size_t length = curve.field_bytes;
  if (EVP_PKEY_derive(context.get(), shared.value().data(), &length) != 1) {
    (void)CryptoFailure("");
    // A point of small order makes it all zeros (RFC 7748, section 6): the peer's fault. On the
    // other curves nothing is left to be wrong.
    return curve.form == CurveForm::kMontgomery ? BadArgument("the peer's point is not one to agree with") : CryptoFailure("ECDH");
  }
  shared.value().Truncate(length);
  return shared;
}

}  // namespace

Result<KeyRef> Ecdh(KeyRef ref, const uint8_t* peer, size_t peer_length) { return EcdhKey(ref, peer, peer_length, {}); }

Result<KeyRef> EcdhKey(KeyRef ref, const uint8_t* peer, size_t peer_length, const EcdhDerivation& derivation) {
  if (derivation.shared_info_length > kMostSharedInfo) return BadArgument("the shared info has at most 32 KiB");
  Result<SecureBuffer> shared = SharedSecret(ref, peer, peer_length);
  if (!shared.ok()) return shared.status();
  const size_t all = shared.value().size();
  const size_t bytes = derivation.bytes == 0 ? all : derivation.bytes;
  if (bytes > (derivation.kdf.has_value() ? size_t{4096} : all)) return BadArgument("the agreement gives fewer bytes");
  if (!derivation.kdf.has_value()) {
    Result<SecureBuffer> last = SecureBuffer::CopyOf(shared.value().data() + all - bytes, bytes);
    if (!last.ok()) return last.status();
    return AddSecretKey(derivation.kind, last.Take());
  }
  const size_t digests = (bytes + Row(*derivation.kdf).bytes - 1) / Row(*derivation.kdf).bytes;
  if (digests * derivation.shared_info_length > kMostHashedInfo) return BadArgument("so long a key needs a shorter shared info");
  Result<SecureBuffer> derived = SecureBuffer::Make(bytes);
  if (!derived.ok()) return derived.status();
  DKE_RETURN_IF_ERROR(X963(derivation, shared.value(), derived.value()));
  return AddSecretKey(derivation.kind, derived.Take());
}

}  // namespace dke
