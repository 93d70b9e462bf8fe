/*
 * The standard's 2.40 headers, and what 3.0 added (module/message/gen/interface.h). Everything
 * declared here is exported, and nothing else is: the compiler hides the rest, exports.map makes
 * sure.
 */
#ifndef DKE_CRYPTOKI_H
#define DKE_CRYPTOKI_H

#pragma GCC visibility push(default)
#include <pkcs11.h>

#include "message/gen/interface.h"
#pragma GCC visibility pop

/* Structures of parameters that 3.0 added. */
typedef struct {
  CK_BBOOL bExtract;
  CK_BBOOL bExpand;
  CK_MECHANISM_TYPE prfHashMechanism;
  CK_ULONG ulSaltType;
  CK_BYTE_PTR pSalt;
  CK_ULONG ulSaltLen;
  CK_OBJECT_HANDLE hSaltKey;
  CK_BYTE_PTR pInfo;
  CK_ULONG ulInfoLen;
} CK_HKDF_PARAMS;

typedef struct {
  CK_BBOOL phFlag;
  CK_ULONG ulContextDataLen;
  CK_BYTE_PTR pContextData;
} CK_EDDSA_PARAMS;

typedef struct {
  CK_MECHANISM_TYPE prfType;
  CK_ULONG ulNumberOfDataParams;
  CK_VOID_PTR pDataParams;
  CK_ULONG ulIVLen;
  CK_BYTE_PTR pIV;
  CK_ULONG ulAdditionalDerivedKeys;
  CK_VOID_PTR pAdditionalDerivedKeys;
} CK_SP800_108_FEEDBACK_KDF_PARAMS;

typedef struct {
  CK_MECHANISM_TYPE prfType;
  CK_ULONG ulNumberOfDataParams;
  CK_VOID_PTR pDataParams;
  CK_ULONG ulAdditionalDerivedKeys;
  CK_VOID_PTR pAdditionalDerivedKeys;
} CK_SP800_108_KDF_PARAMS;

typedef struct {
  CK_ULONG type;
  CK_VOID_PTR pValue;
  CK_ULONG ulValueLen;
} CK_PRF_DATA_PARAM;

typedef struct {
  CK_BBOOL bLittleEndian;
  CK_ULONG ulWidthInBits;
} CK_SP800_108_COUNTER_FORMAT;

typedef struct {
  CK_ULONG dkmLengthMethod;
  CK_BBOOL bLittleEndian;
  CK_ULONG ulWidthInBits;
} CK_SP800_108_DKM_LENGTH_FORMAT;

#endif
