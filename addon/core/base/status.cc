#include "base/status.h"

#include <openssl/err.h>

namespace dke {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kBadArgument: return "bad-argument";
    case Code::kBadKey: return "bad-key";
    case Code::kKeyType: return "key-type";
    case Code::kDataLength: return "data-length";
    case Code::kBufferTooSmall: return "buffer-too-small";
    case Code::kAuthenticationFailed: return "authentication-failed";
    case Code::kSignatureInvalid: return "signature-invalid";
    case Code::kMemoryLock: return "memory-lock";
    case Code::kIo: return "io";
    case Code::kPermission: return "permission";
    case Code::kFormat: return "format";
    case Code::kUnsupported: return "unsupported";
    case Code::kInternal: return "internal";
  }
  return "internal";
}

Status CryptoFailure(const char* what) {
  ERR_clear_error();
  return {Code::kInternal, std::string("libcrypto refused: ") + what};
}

}  // namespace dke
