#include "digests/digest.h"

namespace dke {

EVP_MD_CTX* ScratchDigestContext() {
  static thread_local const EvpMdCtxPtr context(EVP_MD_CTX_new());
  return context.get();
}

Result<size_t> DigestMessage(Digest digest, const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length) {
  const DigestRow& row = Row(digest);
  if (output_length < row.bytes) return BufferTooSmall();
  EVP_MD_CTX* const context = ScratchDigestContext();
  unsigned written = 0;
  if (context == nullptr || EVP_DigestInit_ex(context, row.md(), nullptr) != 1 || EVP_DigestUpdate(context, input, input_length) != 1 ||
      EVP_DigestFinal_ex(context, output, &written) != 1) {
    return CryptoFailure("digest");
  }
  return size_t{written};
}

Result<std::unique_ptr<DigestOperation>> DigestOperation::Begin(Digest digest) {
  EvpMdCtxPtr context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), Row(digest).md(), nullptr) != 1) return CryptoFailure("digest");
  return std::unique_ptr<DigestOperation>(new DigestOperation(digest, std::move(context)));
}

Status DigestOperation::Update(const uint8_t* input, size_t input_length) {
  if (input_length != 0 && EVP_DigestUpdate(context_.get(), input, input_length) != 1) return CryptoFailure("digest");
  return {};
}

Result<size_t> DigestOperation::Final(uint8_t* output, size_t output_length) {
  if (output_length < Row(digest_).bytes) return BufferTooSmall();
  unsigned written = 0;
  if (EVP_DigestFinal_ex(context_.get(), output, &written) != 1) return CryptoFailure("digest");
  return size_t{written};
}

}  // namespace dke
