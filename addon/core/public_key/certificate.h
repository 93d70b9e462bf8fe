// A self-signed X.509 certificate (RFC 5280) with a fresh P-256 key: what the server shows until it
// is given a real one.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace dke {

// Writes the private key to `key_path` (PKCS#8 PEM, mode 0600, must not exist) and returns the
// certificate as PEM. Names are DNS names or IP addresses; the first is also the common name.
Result<std::string> CreateSelfSignedCertificate(const std::string& key_path, const std::vector<std::string>& names, int days);

}  // namespace dke
