// Parameters that several functions take (CipherParameters, OaepParameters and UnwrappedKind in core.ts). Views on JavaScript's bytes: valid
// during the call.
#pragma once

#include "../core/block_cipher.h"
#include "../core/key_wrap.h"
#include "../core/mac.h"
#include "../core/signature.h"
#include "arguments.h"

namespace dke {

CipherParameters ReadCipher(const Arguments& arguments, size_t index);
// The same from an object at hand.
CipherParameters CipherOf(const Arguments& arguments, napi_value object);
MacParameters MacOf(const Arguments& arguments, napi_value object);
OaepParameters ReadOaep(const Arguments& arguments, size_t index);
// 'private' is for the private key that a PKCS#8 holds.
UnwrappedKind ReadUnwrapped(const Arguments& arguments, size_t index);

}  // namespace dke
