/* The standard's 2.40 headers, and what 3.0 added (gen/interface.h). Everything declared here is exported, and nothing else
 * is: the compiler hides the rest, exports.map makes sure. */
#ifndef DKE_CRYPTOKI_H
#define DKE_CRYPTOKI_H

#pragma GCC visibility push(default)
#include <pkcs11.h>

#include "gen/interface.h"
#pragma GCC visibility pop

#endif
