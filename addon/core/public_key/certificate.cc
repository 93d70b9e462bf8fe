#include "public_key/certificate.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/secret_files.h"
#include "keys/key_table.h"
#include "base/random.h"

namespace dke {
namespace {

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Deleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using BioPtr = std::unique_ptr<BIO, BioDeleter>;
using X509Ptr = std::unique_ptr<X509, X509Deleter>;

bool IsAddress(const std::string& name) {
  unsigned char address[16];
  return inet_pton(AF_INET, name.c_str(), address) == 1 || inet_pton(AF_INET6, name.c_str(), address) == 1;
}

bool IsPlainName(const std::string& name) {
  if (name.empty() || name.size() > 253) return false;
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '*' || c == ':';
    if (!plain) return false;
  }
  return true;
}

bool AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

}  // namespace

Result<std::string> CreateSelfSignedCertificate(const std::string& key_path, const std::vector<std::string>& names, int days) {
  if (names.empty() || days < 1 || days > 3650) return BadArgument("a certificate needs a name and 1 to 3650 days");
  std::string alternatives;
  for (const std::string& name : names) {
    if (!IsPlainName(name)) return BadArgument("a certificate's name is a DNS name or an IP address");
    alternatives += (alternatives.empty() ? "" : ",") + std::string(IsAddress(name) ? "IP:" : "DNS:") + name;
  }
  EvpPkeyPtr key(NewPair("EC", "prime256v1"));
  X509Ptr certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return CryptoFailure("certificate");
  X509* x509 = certificate.get();

  uint8_t serial[16];
  DKE_RETURN_IF_ERROR(RandomPublic(serial, sizeof serial));
  serial[0] &= 0x7f;
  serial[0] |= 0x01;  // positive and of full length
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  const bool numbered = number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != nullptr;
  BN_free(number);

  X509_NAME* subject = X509_get_subject_name(x509);
  const auto* common_name = reinterpret_cast<const unsigned char*>(names[0].c_str());
  // A minute ago, so that a client whose clock is slightly behind does not refuse the first start.
  if (!numbered || X509_set_version(x509, X509_VERSION_3) != 1 || X509_gmtime_adj(X509_getm_notBefore(x509), -60) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(x509), static_cast<long>(days) * 86400) == nullptr ||
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, common_name, -1, -1, 0) != 1 ||
      X509_set_issuer_name(x509, subject) != 1 || X509_set_pubkey(x509, key.get()) != 1 ||
      !AddExtension(x509, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(x509, NID_key_usage, "critical,digitalSignature") || !AddExtension(x509, NID_ext_key_usage, "serverAuth") ||
      !AddExtension(x509, NID_subject_key_identifier, "hash") ||
      // A client that has the certificates before and after a renewal selects by key identifier:
      // their names are the same.
      !AddExtension(x509, NID_authority_key_identifier, "keyid:always") ||
      !AddExtension(x509, NID_subject_alt_name, alternatives) ||
      X509_sign(x509, key.get(), EVP_sha256()) == 0) {
    return CryptoFailure("certificate");
  }

  BioPtr certificate_pem(BIO_new(BIO_s_mem()));
  BioPtr key_pem(BIO_new(BIO_s_secmem()));
  if (certificate_pem == nullptr || key_pem == nullptr || PEM_write_bio_X509(certificate_pem.get(), x509) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return CryptoFailure("certificate encoding");
  }
  char* data = nullptr;
  const long key_size = BIO_get_mem_data(key_pem.get(), &data);
  Result<File> file = CreateFile(key_path, 0600);
  if (!file.ok()) return file.status();
  DKE_RETURN_IF_ERROR(WriteAt(file.value(), key_path, data, static_cast<size_t>(key_size), 0));
  DKE_RETURN_IF_ERROR(Sync(file.value(), key_path));
  DKE_RETURN_IF_ERROR(SyncDirectory(key_path));
  const long size = BIO_get_mem_data(certificate_pem.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace dke
