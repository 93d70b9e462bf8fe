#include "public_key/signature.h"

#include <openssl/ec.h>
#include <openssl/rsa.h>

#include <cstring>

namespace dke {
namespace {

struct EcdsaSigDeleter {
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
using EcdsaSigPtr = std::unique_ptr<ECDSA_SIG, EcdsaSigDeleter>;

struct Family {
  KeyKind private_kind;
  KeyKind public_kind;
};
Family FamilyOf(SignatureAlgorithm algorithm) {
  switch (algorithm) {
    case SignatureAlgorithm::kRsaPkcs1:
    case SignatureAlgorithm::kRsaPss:
      return {KeyKind::kRsaPrivate, KeyKind::kRsaPublic};
    case SignatureAlgorithm::kEcdsa:
      return {KeyKind::kEcPrivate, KeyKind::kEcPublic};
    case SignatureAlgorithm::kEd25519:
      return {KeyKind::kEd25519Private, KeyKind::kEd25519Public};
    case SignatureAlgorithm::kEd448:
      break;
  }
  return {KeyKind::kEd448Private, KeyKind::kEd448Public};
}

Status CheckKey(const KeyDescription& key, SignatureAlgorithm algorithm, bool needs_private) {
  const Family family = FamilyOf(algorithm);
  const KeyKind kind = key.kind;
  if (kind == family.private_kind || (!needs_private && kind == family.public_kind)) return {};
  return WrongKeyType();
}

Status SetPadding(EVP_PKEY_CTX* context, const SignatureParameters& parameters) {
  if (parameters.algorithm == SignatureAlgorithm::kRsaPkcs1) {
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1 ? Status() : CryptoFailure("PKCS#1 padding");
  }
  if (parameters.algorithm != SignatureAlgorithm::kRsaPss) return {};
  if (parameters.salt_length < 0 || EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) != 1 ||
      EVP_PKEY_CTX_set_rsa_mgf1_md(context, Row(parameters.mgf_digest).md()) != 1 ||
      EVP_PKEY_CTX_set_rsa_pss_saltlen(context, parameters.salt_length) != 1) {
    (void)CryptoFailure("");
    return BadArgument("the PSS parameters do not fit the key");
  }
  return {};
}

// r || s of fixed length (IEEE P1363, PKCS#11) to DER, or nothing when the length is wrong.
std::vector<uint8_t> ToDer(const CurveRow& curve, const uint8_t* signature, size_t length) {
  if (length != 2 * curve.field_bytes) return {};
  EcdsaSigPtr parsed(ECDSA_SIG_new());
  BIGNUM* r = BN_bin2bn(signature, static_cast<int>(curve.field_bytes), nullptr);
  BIGNUM* s = BN_bin2bn(signature + curve.field_bytes, static_cast<int>(curve.field_bytes), nullptr);
  if (parsed == nullptr || r == nullptr || s == nullptr || ECDSA_SIG_set0(parsed.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return {};
  }
  uint8_t* der = nullptr;
  int size = i2d_ECDSA_SIG(parsed.get(), &der);
  if (size <= 0) return {};
  std::vector<uint8_t> out(der, der + size);
  OPENSSL_free(der);
  return out;
}

Result<std::vector<uint8_t>> ToP1363(const CurveRow& curve, const std::vector<uint8_t>& der) {
  const uint8_t* cursor = der.data();
  EcdsaSigPtr parsed(d2i_ECDSA_SIG(nullptr, &cursor, static_cast<long>(der.size())));
  std::vector<uint8_t> out(2 * curve.field_bytes);
  const int bytes = static_cast<int>(curve.field_bytes);
  if (parsed == nullptr || BN_bn2binpad(ECDSA_SIG_get0_r(parsed.get()), out.data(), bytes) != bytes ||
      BN_bn2binpad(ECDSA_SIG_get0_s(parsed.get()), out.data() + bytes, bytes) != bytes) {
    return CryptoFailure("ECDSA signature encoding");
  }
  return out;
}

bool IsEdwards(const SignatureParameters& parameters) {
  return parameters.algorithm == SignatureAlgorithm::kEd25519 || parameters.algorithm == SignatureAlgorithm::kEd448;
}

// Whether libcrypto hashes the message (EVP_DigestSign) or takes the input as it is
// (EVP_PKEY_sign).
bool HashesInside(const SignatureParameters& parameters) {
  return IsEdwards(parameters) || (parameters.digest.has_value() && !parameters.prehashed);
}

const EVP_MD* InnerDigest(const SignatureParameters& parameters) {
  return IsEdwards(parameters) ? nullptr : Row(*parameters.digest).md();
}

Status CheckParameters(const SignatureParameters& parameters, size_t input_length) {
  if (parameters.algorithm == SignatureAlgorithm::kRsaPss && !parameters.digest.has_value()) return BadArgument("PSS needs a digest");
  if (parameters.prehashed && parameters.digest.has_value() && input_length != Row(*parameters.digest).bytes) {
    return DataLength("the input is not as long as the digest");
  }
  return {};
}

// A bare ECDSA digest longer than the order is cut by libcrypto; an empty one means nothing.
Result<EvpPkeyCtxPtr> BareContext(const HeldPkey& key, const SignatureParameters& parameters, bool signing) {
  EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(key.pkey.get(), nullptr));
  if (context == nullptr || (signing ? EVP_PKEY_sign_init(context.get()) : EVP_PKEY_verify_init(context.get())) != 1) {
    return CryptoFailure("signature setup");
  }
  DKE_RETURN_IF_ERROR(SetPadding(context.get(), parameters));
  if (parameters.digest.has_value() && EVP_PKEY_CTX_set_signature_md(context.get(), Row(*parameters.digest).md()) != 1) {
    return CryptoFailure("signature digest");
  }
  return context;
}

}  // namespace

Result<std::vector<uint8_t>> Sign(const HeldPkey& key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length) {
  DKE_RETURN_IF_ERROR(CheckKey(key.description, parameters.algorithm, true));
  DKE_RETURN_IF_ERROR(CheckParameters(parameters, input_length));
  std::vector<uint8_t> signature(static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get())));
  size_t length = signature.size();
  if (HashesInside(parameters)) {
    EvpMdCtxPtr context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* inner = nullptr;
    if (context == nullptr || EVP_DigestSignInit(context.get(), &inner, InnerDigest(parameters), nullptr, key.pkey.get()) != 1) {
      return CryptoFailure("signature setup");
    }
    DKE_RETURN_IF_ERROR(SetPadding(inner, parameters));
    if (EVP_DigestSign(context.get(), signature.data(), &length, input, input_length) != 1) {
      (void)CryptoFailure("");
      return BadArgument("the parameters do not fit the key");
    }
  } else {
    if (input_length == 0) return DataLength("there is nothing to sign");
    Result<EvpPkeyCtxPtr> context = BareContext(key, parameters, true);
    if (!context.ok()) return context.status();
    if (EVP_PKEY_sign(context.value().get(), signature.data(), &length, input, input_length) != 1) {
      (void)CryptoFailure("");
      return DataLength("the input does not fit the key");
    }
  }
  signature.resize(length);
  if (parameters.algorithm == SignatureAlgorithm::kEcdsa && !parameters.der) return ToP1363(*key.description.curve, signature);
  return signature;
}

Result<std::vector<uint8_t>> Sign(KeyRef ref, const SignatureParameters& parameters, const uint8_t* input, size_t input_length) {
  const Result<HeldPkey> held = HoldPkey(ref);
  return held.ok() ? Sign(held.value(), parameters, input, input_length) : held.status();
}

Result<bool> Verify(KeyRef ref, const SignatureParameters& parameters, const uint8_t* input, size_t input_length,
                    const uint8_t* signature, size_t signature_length) {
  const Result<HeldPkey> held = HoldPkey(ref);
  if (!held.ok()) return held.status();
  const HeldPkey& key = held.value();
  DKE_RETURN_IF_ERROR(CheckKey(key.description, parameters.algorithm, false));
  DKE_RETURN_IF_ERROR(CheckParameters(parameters, input_length));
  std::vector<uint8_t> der;
  if (parameters.algorithm == SignatureAlgorithm::kEcdsa && !parameters.der) {
    der = ToDer(*key.description.curve, signature, signature_length);
    if (der.empty()) return false;
    signature = der.data();
    signature_length = der.size();
  }
  // RFC 8017, 8.1.2 step 1. libcrypto takes a PSS signature that has lost its leading zero.
  const bool rsa = parameters.algorithm == SignatureAlgorithm::kRsaPss || parameters.algorithm == SignatureAlgorithm::kRsaPkcs1;
  if (rsa && signature_length != static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get()))) return false;
  int verified;
  if (HashesInside(parameters)) {
    EvpMdCtxPtr context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* inner = nullptr;
    if (context == nullptr || EVP_DigestVerifyInit(context.get(), &inner, InnerDigest(parameters), nullptr, key.pkey.get()) != 1) {
      return CryptoFailure("signature setup");
    }
    DKE_RETURN_IF_ERROR(SetPadding(inner, parameters));
    verified = EVP_DigestVerify(context.get(), signature, signature_length, input, input_length);
  } else {
    Result<EvpPkeyCtxPtr> context = BareContext(key, parameters, false);
    if (!context.ok()) return context.status();
    verified = EVP_PKEY_verify(context.value().get(), signature, signature_length, input, input_length);
  }
  (void)CryptoFailure("");  // a wrong signature leaves its reasons in libcrypto's queue
  return verified == 1;
}

Result<std::vector<uint8_t>> Recover(KeyRef ref, const uint8_t* signature, size_t signature_length) {
  const Result<HeldPkey> held = HoldPkey(ref);
  if (!held.ok()) return held.status();
  const HeldPkey& key = held.value();
  DKE_RETURN_IF_ERROR(CheckKey(key.description, SignatureAlgorithm::kRsaPkcs1, false));
  std::vector<uint8_t> out(static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get())));
  if (signature_length != out.size()) return DataLength("the signature is not as long as the key");
  EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(key.pkey.get(), nullptr));
  if (context == nullptr || EVP_PKEY_verify_recover_init(context.get()) != 1 ||
      EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) != 1) {
    return CryptoFailure("signature setup");
  }
  size_t length = out.size();
  if (EVP_PKEY_verify_recover(context.get(), out.data(), &length, signature, signature_length) != 1) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  out.resize(length);
  return out;
}

}  // namespace dke
