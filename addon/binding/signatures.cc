// Signatures and RSA encryption (Core in open-core.ts: "digests, macs, signatures").
#include "../core/public_key/rsa_encryption.h"
#include "../core/public_key/signature.h"

#include "arguments.h"
#include "jobs.h"

namespace dke {
namespace {

SignatureParameters ReadSignature(const Arguments& arguments, size_t index) {
  napi_value object = arguments.at(index);
  char name[16];
  const std::string_view algorithm(name, arguments.ShortText(arguments.Member(object, "algorithm"), name, sizeof name));
  SignatureParameters parameters{};
  if (algorithm == "rsa-pkcs1") {
    parameters.algorithm = SignatureAlgorithm::kRsaPkcs1;
  } else if (algorithm == "rsa-pss") {
    parameters.algorithm = SignatureAlgorithm::kRsaPss;
    parameters.mgf_digest = arguments.DigestOf(arguments.Member(object, "mgfDigest"));
    parameters.salt_length = static_cast<int>(arguments.IntegerOf(arguments.Member(object, "saltLength"), 0, 4096));
    if (napi_value prehashed = arguments.Member(object, "prehashed")) parameters.prehashed = arguments.BooleanOf(prehashed);
  } else if (algorithm == "ecdsa") {
    parameters.algorithm = SignatureAlgorithm::kEcdsa;
    char encoding[8];
    const std::string_view text(encoding, arguments.ShortText(arguments.Member(object, "encoding"), encoding, sizeof encoding));
    if (text != "p1363" && text != "der") arguments.Refuse("an ECDSA encoding is 'p1363' or 'der'");
    parameters.der = text == "der";
  } else if (algorithm == "ed25519" || algorithm == "ed448") {
    parameters.algorithm = algorithm == "ed25519" ? SignatureAlgorithm::kEd25519 : SignatureAlgorithm::kEd448;
    return parameters;
  } else {
    arguments.Refuse("no such signature algorithm");
  }
  if (napi_value digest = arguments.Member(object, "digest")) parameters.digest = arguments.DigestOf(digest);
  return parameters;
}

napi_value SignMessage(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(Sign(arguments.Key(0), ReadSignature(arguments, 1), input.data, input.size)));
}

napi_value SignLater(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  return RunLater<std::vector<uint8_t>>(
      arguments,
      [key = arguments.Unwrap(HoldPkey(arguments.Key(0))), parameters = ReadSignature(arguments, 1),
       message = std::vector<uint8_t>(input.data, input.data + input.size)](const std::atomic<bool>&) {
        return Sign(key, parameters, message.data(), message.size());
      },
      FinishBytes);
}

napi_value VerifyMessage(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  const Bytes signature = arguments.ReadBytes(3);
  return arguments.ReturnBoolean(arguments.Unwrap(
      Verify(arguments.Key(0), ReadSignature(arguments, 1), input.data, input.size, signature.data, signature.size)));
}

napi_value RecoverMessage(const Arguments& arguments) {
  const Bytes signature = arguments.ReadBytes(1);
  return arguments.ReturnBuffer(arguments.Unwrap(Recover(arguments.Key(0), signature.data, signature.size)));
}

napi_value EncryptRsa(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(RsaEncrypt(arguments.Key(0), ReadRsaEncryption(arguments, 1), input.data, input.size)));
}

napi_value DecryptRsa(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  const SecureBuffer plain = arguments.Unwrap(RsaDecrypt(arguments.Key(0), ReadRsaEncryption(arguments, 1), input.data, input.size));
  return arguments.ReturnBuffer(plain.data(), plain.size());
}

napi_value DecryptRsaLater(const Arguments& arguments) {
  return RunLater<SecureBuffer>(
      arguments, [job = RsaDecryptionJob(arguments, arguments.at(1))](const std::atomic<bool>&) { return job.Decrypt(); }, FinishSecret);
}

}  // namespace

void RegisterSignatures(Napi::Env env, Napi::Object exports) {
  Define<SignMessage>(env, exports, "sign");
  Define<SignLater>(env, exports, "signLater");
  Define<VerifyMessage>(env, exports, "verify");
  Define<RecoverMessage>(env, exports, "recover");
  Define<EncryptRsa>(env, exports, "rsaEncrypt");
  Define<DecryptRsa>(env, exports, "rsaDecrypt");
  Define<DecryptRsaLater>(env, exports, "rsaDecryptLater");
}

}  // namespace dke
