#include "agreement.h"

#include <openssl/core_names.h>

namespace dke {
namespace {

// The peer's point as a key on the same curve, or null.
EvpPkeyPtr PeerKey(const CurveRow& curve, const uint8_t* point, size_t length) {
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

}  // namespace

Result<KeyRef> Ecdh(KeyRef ref, const uint8_t* peer, size_t peer_length) {
  KeyUse key(ref);
  if (!key) return BadKey();
  if (key->description.kind != KeyKind::kEcPrivate) return WrongKeyType();
  const CurveRow& curve = *key->description.curve;
  if (peer_length != 1 + 2 * curve.field_bytes || peer[0] != 4) return BadArgument("the peer's point is not an uncompressed point of this curve");
  EvpPkeyPtr point = PeerKey(curve, peer, peer_length);
  EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(key->pkey.get(), nullptr));
  if (point == nullptr || context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer_ex(context.get(), point.get(), 1) != 1) {
    (void)CryptoFailure("");
    return BadArgument("the peer's point is not on the curve");
  }
  Result<SecureBuffer> shared = SecureBuffer::Make(curve.field_bytes);
  if (!shared.ok()) return shared.status();
  size_t length = curve.field_bytes;
  if (EVP_PKEY_derive(context.get(), shared.value().data(), &length) != 1) return CryptoFailure("ECDH");
  shared.value().Truncate(length);
  return AddSecretKey(KeyKind::kGeneric, shared.Take());
}

}  // namespace dke
