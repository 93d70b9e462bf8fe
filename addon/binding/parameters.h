// Parameters that several functions take (CipherParameters and OaepParameters in core.ts). Views on JavaScript's bytes: valid
// during the call.
#pragma once

#include "../core/block_cipher.h"
#include "../core/signature.h"
#include "arguments.h"

namespace dke {

CipherParameters ReadCipher(const Arguments& arguments, size_t index);
OaepParameters ReadOaep(const Arguments& arguments, size_t index);

}  // namespace dke
