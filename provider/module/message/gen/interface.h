/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. What 3.0 and 3.2 added to pkcs11.h 2.40. */

#ifndef DKE_INTERFACE_H
#define DKE_INTERFACE_H

typedef struct CK_INTERFACE {
  CK_UTF8CHAR *pInterfaceName;
  CK_VOID_PTR pFunctionList;
  CK_FLAGS flags;
} CK_INTERFACE;
typedef CK_INTERFACE *CK_INTERFACE_PTR;
typedef CK_INTERFACE_PTR *CK_INTERFACE_PTR_PTR;

typedef CK_ULONG CK_SESSION_VALIDATION_FLAGS_TYPE;
typedef struct CK_ASYNC_DATA {
  CK_ULONG ulVersion;
  CK_BYTE_PTR pValue;
  CK_ULONG ulValue;
  CK_OBJECT_HANDLE hObject;
  CK_OBJECT_HANDLE hAdditionalObject;
} CK_ASYNC_DATA;

typedef CK_ULONG CK_GENERATOR_FUNCTION;
typedef struct CK_GCM_MESSAGE_PARAMS {
  CK_BYTE_PTR pIv;
  CK_ULONG ulIvLen;
  CK_ULONG ulIvFixedBits;
  CK_GENERATOR_FUNCTION ivGenerator;
  CK_BYTE_PTR pTag;
  CK_ULONG ulTagBits;
} CK_GCM_MESSAGE_PARAMS;
#define CKF_END_OF_MESSAGE 0x00000001UL
#define CKF_MESSAGE_ENCRYPT 0x00000002UL
#define CKF_MESSAGE_DECRYPT 0x00000004UL
#define CKF_FIND_OBJECTS 0x00000040UL

extern CK_RV C_GetInterfaceList(CK_INTERFACE_PTR interfaces, CK_ULONG_PTR count);
extern CK_RV C_GetInterface(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR interface, CK_FLAGS flags);
extern CK_RV C_LoginUser(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_BYTE_PTR username, CK_ULONG username_length);
extern CK_RV C_SessionCancel(CK_SESSION_HANDLE session, CK_FLAGS flags);
extern CK_RV C_MessageEncryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
extern CK_RV C_EncryptMessage(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR plaintext, CK_ULONG plaintext_length, CK_BYTE_PTR ciphertext, CK_ULONG_PTR ciphertext_length);
extern CK_RV C_EncryptMessageBegin(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
extern CK_RV C_EncryptMessageNext(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR plaintext_part, CK_ULONG plaintext_part_length, CK_BYTE_PTR ciphertext_part, CK_ULONG_PTR ciphertext_part_length, CK_FLAGS flags);
extern CK_RV C_MessageEncryptFinal(CK_SESSION_HANDLE session);
extern CK_RV C_MessageDecryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
extern CK_RV C_DecryptMessage(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR ciphertext, CK_ULONG ciphertext_length, CK_BYTE_PTR plaintext, CK_ULONG_PTR plaintext_length);
extern CK_RV C_DecryptMessageBegin(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
extern CK_RV C_DecryptMessageNext(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR ciphertext_part, CK_ULONG ciphertext_part_length, CK_BYTE_PTR plaintext_part, CK_ULONG_PTR plaintext_part_length, CK_FLAGS flags);
extern CK_RV C_MessageDecryptFinal(CK_SESSION_HANDLE session);
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
extern CK_RV C_EncapsulateKey(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_OBJECT_HANDLE_PTR argument_7);
extern CK_RV C_DecapsulateKey(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_OBJECT_HANDLE_PTR argument_7);
extern CK_RV C_VerifySignatureInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
extern CK_RV C_VerifySignature(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2);
extern CK_RV C_VerifySignatureUpdate(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2);
extern CK_RV C_VerifySignatureFinal(CK_SESSION_HANDLE argument_0);
extern CK_RV C_GetSessionValidationFlags(CK_SESSION_HANDLE argument_0, CK_SESSION_VALIDATION_FLAGS_TYPE argument_1, CK_FLAGS * argument_2);
extern CK_RV C_AsyncComplete(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ASYNC_DATA * argument_2);
extern CK_RV C_AsyncGetID(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG_PTR argument_2);
extern CK_RV C_AsyncJoin(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
extern CK_RV C_WrapKeyAuthenticated(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_OBJECT_HANDLE argument_3, CK_BYTE_PTR argument_4, CK_ULONG argument_5, CK_BYTE_PTR argument_6, CK_ULONG_PTR argument_7);
extern CK_RV C_UnwrapKeyAuthenticated(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_ATTRIBUTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG argument_8, CK_OBJECT_HANDLE_PTR argument_9);

typedef struct CK_FUNCTION_LIST_3_0 {
  CK_VERSION version;
#define CK_PKCS11_FUNCTION_INFO(name) CK_##name name;
#include <pkcs11f.h>
#undef CK_PKCS11_FUNCTION_INFO
  CK_RV (*C_GetInterfaceList)(CK_INTERFACE_PTR interfaces, CK_ULONG_PTR count);
  CK_RV (*C_GetInterface)(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR interface, CK_FLAGS flags);
  CK_RV (*C_LoginUser)(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_BYTE_PTR username, CK_ULONG username_length);
  CK_RV (*C_SessionCancel)(CK_SESSION_HANDLE session, CK_FLAGS flags);
  CK_RV (*C_MessageEncryptInit)(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
  CK_RV (*C_EncryptMessage)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR plaintext, CK_ULONG plaintext_length, CK_BYTE_PTR ciphertext, CK_ULONG_PTR ciphertext_length);
  CK_RV (*C_EncryptMessageBegin)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
  CK_RV (*C_EncryptMessageNext)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR plaintext_part, CK_ULONG plaintext_part_length, CK_BYTE_PTR ciphertext_part, CK_ULONG_PTR ciphertext_part_length, CK_FLAGS flags);
  CK_RV (*C_MessageEncryptFinal)(CK_SESSION_HANDLE session);
  CK_RV (*C_MessageDecryptInit)(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
  CK_RV (*C_DecryptMessage)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR ciphertext, CK_ULONG ciphertext_length, CK_BYTE_PTR plaintext, CK_ULONG_PTR plaintext_length);
  CK_RV (*C_DecryptMessageBegin)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
  CK_RV (*C_DecryptMessageNext)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR ciphertext_part, CK_ULONG ciphertext_part_length, CK_BYTE_PTR plaintext_part, CK_ULONG_PTR plaintext_part_length, CK_FLAGS flags);
  CK_RV (*C_MessageDecryptFinal)(CK_SESSION_HANDLE session);
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

typedef struct CK_FUNCTION_LIST_3_2 {
  CK_VERSION version;
#define CK_PKCS11_FUNCTION_INFO(name) CK_##name name;
#include <pkcs11f.h>
#undef CK_PKCS11_FUNCTION_INFO
  CK_RV (*C_GetInterfaceList)(CK_INTERFACE_PTR interfaces, CK_ULONG_PTR count);
  CK_RV (*C_GetInterface)(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR interface, CK_FLAGS flags);
  CK_RV (*C_LoginUser)(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_BYTE_PTR username, CK_ULONG username_length);
  CK_RV (*C_SessionCancel)(CK_SESSION_HANDLE session, CK_FLAGS flags);
  CK_RV (*C_MessageEncryptInit)(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
  CK_RV (*C_EncryptMessage)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR plaintext, CK_ULONG plaintext_length, CK_BYTE_PTR ciphertext, CK_ULONG_PTR ciphertext_length);
  CK_RV (*C_EncryptMessageBegin)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
  CK_RV (*C_EncryptMessageNext)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR plaintext_part, CK_ULONG plaintext_part_length, CK_BYTE_PTR ciphertext_part, CK_ULONG_PTR ciphertext_part_length, CK_FLAGS flags);
  CK_RV (*C_MessageEncryptFinal)(CK_SESSION_HANDLE session);
  CK_RV (*C_MessageDecryptInit)(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key);
  CK_RV (*C_DecryptMessage)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR ciphertext, CK_ULONG ciphertext_length, CK_BYTE_PTR plaintext, CK_ULONG_PTR plaintext_length);
  CK_RV (*C_DecryptMessageBegin)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length);
  CK_RV (*C_DecryptMessageNext)(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR ciphertext_part, CK_ULONG ciphertext_part_length, CK_BYTE_PTR plaintext_part, CK_ULONG_PTR plaintext_part_length, CK_FLAGS flags);
  CK_RV (*C_MessageDecryptFinal)(CK_SESSION_HANDLE session);
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
  CK_RV (*C_EncapsulateKey)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_OBJECT_HANDLE_PTR argument_7);
  CK_RV (*C_DecapsulateKey)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_OBJECT_HANDLE_PTR argument_7);
  CK_RV (*C_VerifySignatureInit)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
  CK_RV (*C_VerifySignature)(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2);
  CK_RV (*C_VerifySignatureUpdate)(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2);
  CK_RV (*C_VerifySignatureFinal)(CK_SESSION_HANDLE argument_0);
  CK_RV (*C_GetSessionValidationFlags)(CK_SESSION_HANDLE argument_0, CK_SESSION_VALIDATION_FLAGS_TYPE argument_1, CK_FLAGS * argument_2);
  CK_RV (*C_AsyncComplete)(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ASYNC_DATA * argument_2);
  CK_RV (*C_AsyncGetID)(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG_PTR argument_2);
  CK_RV (*C_AsyncJoin)(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4);
  CK_RV (*C_WrapKeyAuthenticated)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_OBJECT_HANDLE argument_3, CK_BYTE_PTR argument_4, CK_ULONG argument_5, CK_BYTE_PTR argument_6, CK_ULONG_PTR argument_7);
  CK_RV (*C_UnwrapKeyAuthenticated)(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_ATTRIBUTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG argument_8, CK_OBJECT_HANDLE_PTR argument_9);
} CK_FUNCTION_LIST_3_2;

#define DKE_FUNCTIONS_3_0(DKE_FUNCTION) \
  DKE_FUNCTION(C_GetInterfaceList) \
  DKE_FUNCTION(C_GetInterface) \
  DKE_FUNCTION(C_LoginUser) \
  DKE_FUNCTION(C_SessionCancel) \
  DKE_FUNCTION(C_MessageEncryptInit) \
  DKE_FUNCTION(C_EncryptMessage) \
  DKE_FUNCTION(C_EncryptMessageBegin) \
  DKE_FUNCTION(C_EncryptMessageNext) \
  DKE_FUNCTION(C_MessageEncryptFinal) \
  DKE_FUNCTION(C_MessageDecryptInit) \
  DKE_FUNCTION(C_DecryptMessage) \
  DKE_FUNCTION(C_DecryptMessageBegin) \
  DKE_FUNCTION(C_DecryptMessageNext) \
  DKE_FUNCTION(C_MessageDecryptFinal) \
  DKE_FUNCTION(C_MessageSignInit) \
  DKE_FUNCTION(C_SignMessage) \
  DKE_FUNCTION(C_SignMessageBegin) \
  DKE_FUNCTION(C_SignMessageNext) \
  DKE_FUNCTION(C_MessageSignFinal) \
  DKE_FUNCTION(C_MessageVerifyInit) \
  DKE_FUNCTION(C_VerifyMessage) \
  DKE_FUNCTION(C_VerifyMessageBegin) \
  DKE_FUNCTION(C_VerifyMessageNext) \
  DKE_FUNCTION(C_MessageVerifyFinal)

#define DKE_FUNCTIONS_3_2(DKE_FUNCTION) \
  DKE_FUNCTION(C_EncapsulateKey) \
  DKE_FUNCTION(C_DecapsulateKey) \
  DKE_FUNCTION(C_VerifySignatureInit) \
  DKE_FUNCTION(C_VerifySignature) \
  DKE_FUNCTION(C_VerifySignatureUpdate) \
  DKE_FUNCTION(C_VerifySignatureFinal) \
  DKE_FUNCTION(C_GetSessionValidationFlags) \
  DKE_FUNCTION(C_AsyncComplete) \
  DKE_FUNCTION(C_AsyncGetID) \
  DKE_FUNCTION(C_AsyncJoin) \
  DKE_FUNCTION(C_WrapKeyAuthenticated) \
  DKE_FUNCTION(C_UnwrapKeyAuthenticated)

#endif
