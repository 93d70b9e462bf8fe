/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. What 3.0 added to pkcs11.h 2.40. */

#ifndef DKE_INTERFACE_H
#define DKE_INTERFACE_H

typedef struct CK_INTERFACE {
  CK_UTF8CHAR *pInterfaceName;
  CK_VOID_PTR pFunctionList;
  CK_FLAGS flags;
} CK_INTERFACE;
typedef CK_INTERFACE *CK_INTERFACE_PTR;
typedef CK_INTERFACE_PTR *CK_INTERFACE_PTR_PTR;

extern CK_RV C_GetInterfaceList(CK_INTERFACE_PTR interfaces, CK_ULONG_PTR count);
extern CK_RV C_GetInterface(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR interface, CK_FLAGS flags);
extern CK_RV C_LoginUser(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_BYTE_PTR username, CK_ULONG username_length);
extern CK_RV C_SessionCancel(CK_SESSION_HANDLE session, CK_FLAGS flags);
extern CK_RV C_MessageEncryptInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
extern CK_RV C_EncryptMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG_PTR argument_8);
extern CK_RV C_EncryptMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
extern CK_RV C_EncryptMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_FLAGS argument_7);
extern CK_RV C_MessageEncryptFinal(CK_SESSION_HANDLE argument_0);
extern CK_RV C_MessageDecryptInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
extern CK_RV C_DecryptMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG_PTR argument_8);
extern CK_RV C_DecryptMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
extern CK_RV C_DecryptMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_FLAGS argument_7);
extern CK_RV C_MessageDecryptFinal(CK_SESSION_HANDLE argument_0);
extern CK_RV C_MessageSignInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
extern CK_RV C_SignMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6);
extern CK_RV C_SignMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2);
extern CK_RV C_SignMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6);
extern CK_RV C_MessageSignFinal(CK_SESSION_HANDLE argument_0);
extern CK_RV C_MessageVerifyInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
extern CK_RV C_VerifyMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6);
extern CK_RV C_VerifyMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2);
extern CK_RV C_VerifyMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6);
extern CK_RV C_MessageVerifyFinal(CK_SESSION_HANDLE argument_0);

typedef struct CK_FUNCTION_LIST_3_0 {
  CK_VERSION version;
#define CK_PKCS11_FUNCTION_INFO(name) CK_##name name;
#include <pkcs11f.h>
#undef CK_PKCS11_FUNCTION_INFO
  CK_RV (*C_GetInterfaceList)(CK_INTERFACE_PTR interfaces, CK_ULONG_PTR count);
  CK_RV (*C_GetInterface)(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR interface, CK_FLAGS flags);
  CK_RV (*C_LoginUser)(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_BYTE_PTR username, CK_ULONG username_length);
  CK_RV (*C_SessionCancel)(CK_SESSION_HANDLE session, CK_FLAGS flags);
  CK_RV (*C_MessageEncryptInit)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
  CK_RV (*C_EncryptMessage)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG_PTR argument_8);
  CK_RV (*C_EncryptMessageBegin)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
  CK_RV (*C_EncryptMessageNext)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_FLAGS argument_7);
  CK_RV (*C_MessageEncryptFinal)(CK_SESSION_HANDLE argument_0);
  CK_RV (*C_MessageDecryptInit)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
  CK_RV (*C_DecryptMessage)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG_PTR argument_8);
  CK_RV (*C_DecryptMessageBegin)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
  CK_RV (*C_DecryptMessageNext)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_FLAGS argument_7);
  CK_RV (*C_MessageDecryptFinal)(CK_SESSION_HANDLE argument_0);
  CK_RV (*C_MessageSignInit)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
  CK_RV (*C_SignMessage)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6);
  CK_RV (*C_SignMessageBegin)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2);
  CK_RV (*C_SignMessageNext)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6);
  CK_RV (*C_MessageSignFinal)(CK_SESSION_HANDLE argument_0);
  CK_RV (*C_MessageVerifyInit)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2);
  CK_RV (*C_VerifyMessage)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6);
  CK_RV (*C_VerifyMessageBegin)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2);
  CK_RV (*C_VerifyMessageNext)(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6);
  CK_RV (*C_MessageVerifyFinal)(CK_SESSION_HANDLE argument_0);
} CK_FUNCTION_LIST_3_0;

#define DKE_FUNCTIONS_3_0 \
  DKE_FUNCTION_3_0(C_GetInterfaceList) \
  DKE_FUNCTION_3_0(C_GetInterface) \
  DKE_FUNCTION_3_0(C_LoginUser) \
  DKE_FUNCTION_3_0(C_SessionCancel) \
  DKE_FUNCTION_3_0(C_MessageEncryptInit) \
  DKE_FUNCTION_3_0(C_EncryptMessage) \
  DKE_FUNCTION_3_0(C_EncryptMessageBegin) \
  DKE_FUNCTION_3_0(C_EncryptMessageNext) \
  DKE_FUNCTION_3_0(C_MessageEncryptFinal) \
  DKE_FUNCTION_3_0(C_MessageDecryptInit) \
  DKE_FUNCTION_3_0(C_DecryptMessage) \
  DKE_FUNCTION_3_0(C_DecryptMessageBegin) \
  DKE_FUNCTION_3_0(C_DecryptMessageNext) \
  DKE_FUNCTION_3_0(C_MessageDecryptFinal) \
  DKE_FUNCTION_3_0(C_MessageSignInit) \
  DKE_FUNCTION_3_0(C_SignMessage) \
  DKE_FUNCTION_3_0(C_SignMessageBegin) \
  DKE_FUNCTION_3_0(C_SignMessageNext) \
  DKE_FUNCTION_3_0(C_MessageSignFinal) \
  DKE_FUNCTION_3_0(C_MessageVerifyInit) \
  DKE_FUNCTION_3_0(C_VerifyMessage) \
  DKE_FUNCTION_3_0(C_VerifyMessageBegin) \
  DKE_FUNCTION_3_0(C_VerifyMessageNext) \
  DKE_FUNCTION_3_0(C_MessageVerifyFinal)

#endif
