/*
 * A C program that loads a PKCS#11 library by its path and checks what only C can see: where output
 * is written and where it is not, and how long it is said to be, of every function that has some;
 * null pointers, structures that are misaligned, calls before C_Initialize, the lists of all
 * versions. The token must be ours, without valuable content. Prints the faults; the exit code is
 * the number of faults. test/conformance/c-programs.test.ts runs it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "message/cryptoki.h"

static CK_FUNCTION_LIST_3_2 *p11;

enum { CKR_AEAD_DECRYPT_FAILED_ = 0x42 };
static CK_BBOOL yes = CK_TRUE;
static CK_SESSION_HANDLE session;

static CK_OBJECT_HANDLE make_key(CK_BBOOL token) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_AES;
  CK_BYTE value[32];
  CK_OBJECT_HANDLE key = 0;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},   {CKA_VALUE, value, sizeof value},
      {CKA_TOKEN, &token, sizeof token}, {CKA_ENCRYPT, &yes, sizeof yes},      {CKA_DECRYPT, &yes, sizeof yes},
  };

  memset(value, 0x5a, sizeof value);
  IS(p11->C_CreateObject(session, template, 6, &key), CKR_OK);
  return key;
}

static int all(const CK_BYTE *bytes, size_t length, CK_BYTE is) {
  for (size_t i = 0; i < length; i++)
    if (bytes[i] != is) return 0;
  return 1;
}

/*
 * --- messages ------------------------------------------------------------------------------------
 */

static void messages(CK_BBOOL token) {
  const CK_OBJECT_HANDLE key = make_key(token);
  CK_BYTE iv[16];  /* twelve, and bytes that must not change */
  CK_BYTE tag[20]; /* sixteen, and bytes that must not change */
  CK_BYTE data[40] = "what is to be kept between two parties";
  CK_BYTE aad[8] = "open";
  CK_BYTE sealed[48];
  CK_BYTE opened[48];
  CK_GCM_MESSAGE_PARAMS parameter = {iv, 12, 0, 0 /* CKG_NO_GENERATE */, tag, 128};
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
  /* The parameter's structure, misaligned. */
  CK_BYTE misaligned[sizeof parameter + 1];
  CK_ULONG length = sizeof sealed;

  memset(iv, 0x11, sizeof iv);
  memset(tag, 0xee, sizeof tag);
  memset(sealed, 0xee, sizeof sealed);

  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_OPERATION_NOT_INITIALIZED);
  /*
   * The mechanism's own parameter: none, or the structure, which is as long as CK_GCM_PARAMS and is
   * none.
   */
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_OK);
  IS(p11->C_MessageEncryptFinal(session), CKR_OK);
  mechanism.pParameter = &parameter;
  mechanism.ulParameterLen = 5;
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_MECHANISM_PARAM_INVALID);
  mechanism.ulParameterLen = sizeof parameter;
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_OK);

  /* Null pointers. */
  length = sizeof sealed;
  IS(p11->C_EncryptMessage(session, NULL, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_MECHANISM_PARAM_INVALID);
  IS(p11->C_EncryptMessage(session, &parameter, 8, aad, 8, data, 40, sealed, &length), CKR_MECHANISM_PARAM_INVALID);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, NULL, 8, data, 40, sealed, &length), CKR_ARGUMENTS_BAD);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, NULL, 40, sealed, &length), CKR_ARGUMENTS_BAD);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, NULL), CKR_ARGUMENTS_BAD);
  parameter.pTag = NULL;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);
  parameter.pTag = tag;
  parameter.pIv = NULL;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);
  parameter.pIv = iv;

  /* A query and too little room write nothing but the length. */
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, NULL, &length), CKR_OK);
  HOLDS(length == 40);
  length = 39;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_BUFFER_TOO_SMALL);
  HOLDS(length == 40 && all(sealed, sizeof sealed, 0xee) && all(tag, sizeof tag, 0xee) && all(iv, sizeof iv, 0x11));

  /*
   * The caller's IV stays, ciphertext and tag are written, and the bytes after them do not change.
   */
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_OK);
  HOLDS(length == 40 && all(sealed + 40, 8, 0xee) && !all(sealed, 40, 0xee));
  HOLDS(all(iv, sizeof iv, 0x11) && all(tag + 16, 4, 0xee) && !all(tag, 16, 0xee));
  length = sizeof sealed;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);

  mechanism = (CK_MECHANISM){CKM_AES_GCM, NULL, 0};
  IS(p11->C_MessageDecryptInit(session, &mechanism, key), CKR_OK);
  length = sizeof opened;
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, 8, sealed, 40, opened, &length), CKR_OK);
  HOLDS(length == 40 && memcmp(opened, data, 40) == 0);
  tag[3] ^= 1;
  memset(opened, 0xee, sizeof opened);
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, 8, sealed, 40, opened, &length),
     CKR_AEAD_DECRYPT_FAILED_);
  HOLDS(all(opened, sizeof opened, 0xee));
  tag[3] ^= 1;

  /*
   * A generated IV is returned after its fixed bits; encrypted in parts, in place, with the
   * structure misaligned.
   */
  parameter.ivGenerator = 1; /* CKG_GENERATE */
  memcpy(misaligned + 1, &parameter, sizeof parameter);
  IS(p11->C_EncryptMessageBegin(session, misaligned + 1, sizeof parameter, aad, 8), CKR_OK);
  HOLDS(!all(iv, 12, 0x11) && all(iv + 12, 4, 0x11));
  memcpy(sealed, data, 40);
  length = 24;
  IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed, 24, sealed, &length, 0), CKR_OK);
  if (length == 24) {
    length = 16;
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed + 24, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_OK);
    HOLDS(length == 16);
  } else {
    /* A key in the service: all output follows at the end. */
    HOLDS(length == 0 && token);
    length = 16;
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_BUFFER_TOO_SMALL);
    HOLDS(length == 40);
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_OK);
  }
  IS(p11->C_MessageEncryptFinal(session), CKR_OK);
  IS(p11->C_MessageEncryptFinal(session), CKR_OPERATION_NOT_INITIALIZED);

  IS(p11->C_DecryptMessageBegin(session, &parameter, sizeof parameter, aad, 8), CKR_OK);
  length = sizeof opened;
  IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed, 40, opened, &length, CKF_END_OF_MESSAGE), CKR_OK);
  HOLDS(length == 40 && memcmp(opened, data, 40) == 0);
  IS(p11->C_MessageDecryptInit(session, NULL, 0), CKR_OK);
  IS(p11->C_MessageDecryptFinal(session), CKR_OPERATION_NOT_INITIALIZED);
  IS(p11->C_DestroyObject(session, key), CKR_OK);
}

/*
 * --- the rule for output, 5.2, of every function that has some -----------------------------------
 */

/* What the producers below work with. */
static CK_OBJECT_HANDLE aes, wrapper, public_key, private_key, hmac;
static CK_BYTE clear[40] = "forty bytes of what is to be made of it";
static CK_BYTE made[600];
static CK_ULONG made_length;
static CK_GCM_MESSAGE_PARAMS message;
static CK_BYTE message_iv[12];
static CK_BYTE message_tag[16];

static CK_MECHANISM iv_mechanism(CK_MECHANISM_TYPE type) {
  static CK_BYTE iv[16];
  return (CK_MECHANISM){type, iv, sizeof iv};
}
#define INIT(function, type, key)                                                                                         \
  do {                                                                                                                    \
    CK_MECHANISM mechanism_ = (type) == CKM_AES_CBC_PAD ? iv_mechanism(type) : (CK_MECHANISM){type, NULL, 0};             \
    IS(p11->function(session, &mechanism_, key), CKR_OK);                                                                 \
  } while (0)
static void digest_init(void) {
  CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
  IS(p11->C_DigestInit(session, &mechanism), CKR_OK);
}
/* Nothing of the earlier lines runs on. */
static void reset(void) {
  IS(p11->C_SessionCancel(session, CKF_ENCRYPT | CKF_DECRYPT | CKF_DIGEST | CKF_SIGN | CKF_SIGN_RECOVER | CKF_VERIFY |
                                       CKF_VERIFY_RECOVER | CKF_MESSAGE_ENCRYPT | CKF_MESSAGE_DECRYPT),
     CKR_OK);
}
static void part_of_encryption(void) {
  CK_BYTE out[64];
  CK_ULONG length = sizeof out;
  INIT(C_EncryptInit, CKM_AES_CBC_PAD, aes);
  IS(p11->C_EncryptUpdate(session, clear, 5, out, &length), CKR_OK);
}
static void an_encrypted_text(void) {
  made_length = sizeof made;
  INIT(C_EncryptInit, CKM_AES_CBC_PAD, aes);
  IS(p11->C_Encrypt(session, clear, sizeof clear, made, &made_length), CKR_OK);
}
static void a_decryption(void) {
  an_encrypted_text();
  INIT(C_DecryptInit, CKM_AES_CBC_PAD, aes);
}
static void part_of_decryption(void) {
  CK_BYTE out[64];
  CK_ULONG length = sizeof out;
  a_decryption();
  IS(p11->C_DecryptUpdate(session, made, made_length, out, &length), CKR_OK);
}
static void a_signature(void) {
  made_length = sizeof made;
  INIT(C_SignRecoverInit, CKM_RSA_PKCS, private_key);
  IS(p11->C_SignRecover(session, clear, sizeof clear, made, &made_length), CKR_OK);
  INIT(C_VerifyRecoverInit, CKM_RSA_PKCS, public_key);
}
static void an_encryption(void) { INIT(C_EncryptInit, CKM_AES_CBC_PAD, aes); }
static void a_mac(void) { INIT(C_SignInit, CKM_SHA256_HMAC, hmac); }
static void part_of_mac(void) {
  a_mac();
  IS(p11->C_SignUpdate(session, clear, sizeof clear), CKR_OK);
}
static void part_of_digest(void) {
  digest_init();
  IS(p11->C_DigestUpdate(session, clear, sizeof clear), CKR_OK);
}
static void a_recoverable_signature(void) { INIT(C_SignRecoverInit, CKM_RSA_PKCS, private_key); }
static void both_digest_and_encrypt(void) { digest_init(), an_encryption(); }
static void both_decrypt_and_digest(void) { a_decryption(), digest_init(); }
static void both_sign_and_encrypt(void) { a_mac(), an_encryption(); }
static void both_decrypt_and_verify(void) {
  a_decryption();
  INIT(C_VerifyInit, CKM_SHA256_HMAC, hmac);
}
static void messages_to_encrypt(void) {
  message = (CK_GCM_MESSAGE_PARAMS){message_iv, sizeof message_iv, 0, 1, message_tag, 128};
  INIT(C_MessageEncryptInit, CKM_AES_GCM, aes);
}
static void a_message_in_parts(void) {
  messages_to_encrypt();
  IS(p11->C_EncryptMessageBegin(session, &message, sizeof message, NULL, 0), CKR_OK);
}
static void a_message_to_decrypt(void) {
  made_length = sizeof made;
  messages_to_encrypt();
  IS(p11->C_EncryptMessage(session, &message, sizeof message, NULL, 0, clear, sizeof clear, made, &made_length), CKR_OK);
  INIT(C_MessageDecryptInit, CKM_AES_GCM, aes);
}
static void an_encrypted_message_in_parts(void) {
  a_message_to_decrypt();
  IS(p11->C_DecryptMessageBegin(session, &message, sizeof message, NULL, 0), CKR_OK);
}

#define OUTPUT(name, call) \
  static CK_RV name(CK_BYTE_PTR out, CK_ULONG_PTR length) { return p11->call; }
OUTPUT(encrypt, C_Encrypt(session, clear, sizeof clear, out, length))
OUTPUT(encrypt_update, C_EncryptUpdate(session, clear, sizeof clear, out, length))
OUTPUT(encrypt_final, C_EncryptFinal(session, out, length))
OUTPUT(decrypt, C_Decrypt(session, made, made_length, out, length))
OUTPUT(decrypt_update, C_DecryptUpdate(session, made, made_length, out, length))
OUTPUT(decrypt_final, C_DecryptFinal(session, out, length))
OUTPUT(digest, C_Digest(session, clear, sizeof clear, out, length))
OUTPUT(digest_final, C_DigestFinal(session, out, length))
OUTPUT(sign, C_Sign(session, clear, sizeof clear, out, length))
OUTPUT(sign_final, C_SignFinal(session, out, length))
OUTPUT(sign_recover, C_SignRecover(session, clear, sizeof clear, out, length))
OUTPUT(verify_recover, C_VerifyRecover(session, made, made_length, out, length))
OUTPUT(digest_encrypt, C_DigestEncryptUpdate(session, clear, sizeof clear, out, length))
OUTPUT(decrypt_digest, C_DecryptDigestUpdate(session, made, made_length, out, length))
OUTPUT(sign_encrypt, C_SignEncryptUpdate(session, clear, sizeof clear, out, length))
OUTPUT(decrypt_verify, C_DecryptVerifyUpdate(session, made, made_length, out, length))
OUTPUT(encrypt_message, C_EncryptMessage(session, &message, sizeof message, NULL, 0, clear, sizeof clear, out, length))
OUTPUT(encrypt_message_end, C_EncryptMessageNext(session, &message, sizeof message, clear, sizeof clear, out, length, CKF_END_OF_MESSAGE))
OUTPUT(decrypt_message, C_DecryptMessage(session, &message, sizeof message, NULL, 0, made, made_length, out, length))
OUTPUT(decrypt_message_end, C_DecryptMessageNext(session, &message, sizeof message, made, made_length, out, length, CKF_END_OF_MESSAGE))
static CK_RV wrap(CK_BYTE_PTR out, CK_ULONG_PTR length) {
  CK_MECHANISM mechanism = {CKM_AES_KEY_WRAP_PAD, NULL, 0};
  return p11->C_WrapKey(session, &mechanism, wrapper, hmac, out, length);
}

/* `once`: output is not returned again. `lasts`: an error does not end the operation. */
static const struct output {
  const char *name;
  void (*start)(void);
  CK_RV (*run)(CK_BYTE_PTR out, CK_ULONG_PTR length);
  int once;
  int lasts;
} outputs[] = {
    {"C_Encrypt", an_encryption, encrypt, 1, 0},
    {"C_EncryptUpdate", an_encryption, encrypt_update, 0, 0},
    {"C_EncryptFinal", part_of_encryption, encrypt_final, 1, 0},
    {"C_Decrypt", a_decryption, decrypt, 1, 0},
    {"C_DecryptUpdate", a_decryption, decrypt_update, 0, 0},
    {"C_DecryptFinal", part_of_decryption, decrypt_final, 1, 0},
    {"C_Digest", digest_init, digest, 1, 0},
    {"C_DigestFinal", part_of_digest, digest_final, 1, 0},
    {"C_Sign", a_mac, sign, 1, 0},
    {"C_SignFinal", part_of_mac, sign_final, 1, 0},
    {"C_SignRecover", a_recoverable_signature, sign_recover, 1, 0},
    {"C_VerifyRecover", a_signature, verify_recover, 1, 0},
    {"C_DigestEncryptUpdate", both_digest_and_encrypt, digest_encrypt, 0, 0},
    {"C_DecryptDigestUpdate", both_decrypt_and_digest, decrypt_digest, 0, 0},
    {"C_SignEncryptUpdate", both_sign_and_encrypt, sign_encrypt, 0, 0},
    {"C_DecryptVerifyUpdate", both_decrypt_and_verify, decrypt_verify, 0, 0},
    {"C_WrapKey", reset, wrap, 0, 1},
    {"C_EncryptMessage", messages_to_encrypt, encrypt_message, 0, 1},
    {"C_EncryptMessageNext", a_message_in_parts, encrypt_message_end, 1, 1},
    {"C_DecryptMessage", a_message_to_decrypt, decrypt_message, 0, 1},
    {"C_DecryptMessageNext", an_encrypted_message_in_parts, decrypt_message_end, 1, 1},
};

static void output_rule(const struct output *output) {
  const int before = faults;
  CK_BYTE out[700];
  CK_ULONG wanted = 0;
  CK_ULONG length;

  reset();
  output->start();
  memset(out, 0xee, sizeof out);
  /* Asked for the length, twice. */
  IS(output->run(NULL, &wanted), CKR_OK);
  length = 0;
  IS(output->run(NULL, &length), CKR_OK);
  HOLDS(length == wanted && wanted < sizeof out);
  /*
   * A buffer that is too small, or empty, is not written. The reported length is exact or larger; a
   * buffer of that length is enough.
   */
  for (CK_ULONG room = 0; wanted > 0 && room < wanted; room += wanted > 1 ? wanted - 1 : 1) {
    length = room;
    const CK_RV rv = output->run(out, &length);
    if (rv == CKR_OK && room > 0) goto given; /* the reported length is the maximum */
    IS(rv, CKR_BUFFER_TOO_SMALL);
    HOLDS(length > room && length <= wanted && all(out, sizeof out, 0xee));
  }
  length = wanted;
  IS(output->run(out, &length), CKR_OK);
given:
  HOLDS(length <= wanted && all(out + length, sizeof out - length, 0xee));
  if (output->once) {
    length = sizeof out;
    IS(output->run(out, &length), CKR_OPERATION_NOT_INITIALIZED);
  }
  /*
   * An error ends the operation, also one that the library finds on its own. Of messages it ends
   * none.
   */
  reset();
  output->start();
  IS(output->run(out, NULL), CKR_ARGUMENTS_BAD);
  length = sizeof out;
  IS(output->run(out, &length), output->lasts ? CKR_OK : CKR_OPERATION_NOT_INITIALIZED);
  if (faults > before) printf("  ... that was %s\n", output->name);
}

static CK_OBJECT_HANDLE make_secret(CK_KEY_TYPE type, CK_ULONG size, CK_ATTRIBUTE_TYPE use, CK_BBOOL token) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_BYTE value[32];
  CK_OBJECT_HANDLE key = 0;
  CK_BBOOL no = CK_FALSE;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class},         {CKA_KEY_TYPE, &type, sizeof type}, {CKA_VALUE, value, size},
      {CKA_TOKEN, &token, sizeof token},         {use, &yes, sizeof yes},            {CKA_EXTRACTABLE, &yes, sizeof yes},
      {CKA_SENSITIVE, &no, sizeof no},
  };

  memset(value, (int)use, sizeof value);
  IS(p11->C_CreateObject(session, template, 7, &key), CKR_OK);
  return key;
}

static void output_rules(CK_BBOOL token) {
  CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
  CK_ULONG bits = 2048;
  CK_ATTRIBUTE public_template[] = {
      {CKA_TOKEN, &token, sizeof token}, {CKA_MODULUS_BITS, &bits, sizeof bits}, {CKA_VERIFY_RECOVER, &yes, sizeof yes}};
  CK_ATTRIBUTE private_template[] = {{CKA_TOKEN, &token, sizeof token}, {CKA_SIGN_RECOVER, &yes, sizeof yes}};

  aes = make_key(token);
  wrapper = make_secret(CKK_AES, 32, CKA_WRAP, token);
  hmac = make_secret(CKK_GENERIC_SECRET, 32, CKA_SIGN, token);
  IS(p11->C_GenerateKeyPair(session, &mechanism, public_template, 3, private_template, 2, &public_key, &private_key), CKR_OK);
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) output_rule(&outputs[i]);
  reset();
  IS(p11->C_DestroyObject(session, aes), CKR_OK);
  IS(p11->C_DestroyObject(session, wrapper), CKR_OK);
  IS(p11->C_DestroyObject(session, hmac), CKR_OK);
  IS(p11->C_DestroyObject(session, public_key), CKR_OK);
  IS(p11->C_DestroyObject(session, private_key), CKR_OK);
}

/*
 * --- lists, 5.2 too ------------------------------------------------------------------------------
 */

static void lists(void) {
  CK_SLOT_ID slots[2] = {77, 77};
  CK_MECHANISM_TYPE types[300];
  CK_ULONG count = 0;
  CK_ULONG wanted = 0;

  IS(p11->C_GetSlotList(CK_TRUE, NULL, &wanted), CKR_OK);
  HOLDS(wanted == 1);
  IS(p11->C_GetSlotList(CK_TRUE, slots, &count), CKR_BUFFER_TOO_SMALL);
  HOLDS(count == 1 && slots[0] == 77);
  IS(p11->C_GetSlotList(CK_TRUE, slots, &count), CKR_OK);
  HOLDS(count == 1 && slots[0] == 0 && slots[1] == 77);
  IS(p11->C_GetSlotList(CK_TRUE, slots, NULL), CKR_ARGUMENTS_BAD);

  IS(p11->C_GetMechanismList(0, NULL, &wanted), CKR_OK);
  HOLDS(wanted > 50 && wanted < 300);
  memset(types, 0xee, sizeof types);
  count = wanted - 1;
  IS(p11->C_GetMechanismList(0, types, &count), CKR_BUFFER_TOO_SMALL);
  HOLDS(count == wanted && all((CK_BYTE *)types, sizeof types, 0xee));
  IS(p11->C_GetMechanismList(0, types, &count), CKR_OK);
  HOLDS(count == wanted && all((CK_BYTE *)(types + count), sizeof types - count * sizeof *types, 0xee));
}

static void attribute_values(void) {
  const CK_OBJECT_HANDLE key = make_secret(CKK_GENERIC_SECRET, 20, CKA_SIGN, CK_FALSE);
  CK_BYTE value[24];
  CK_ULONG type = 0;
  CK_BYTE modulus[4];
  CK_ATTRIBUTE asked[] = {
      {CKA_VALUE, NULL, 7}, {CKA_KEY_TYPE, &type, 3}, {CKA_MODULUS, modulus, sizeof modulus}, {CKA_VALUE, value, sizeof value}};

  /* All are checked, even if one of them is wrong. */
  memset(value, 0xee, sizeof value);
  HOLDS(p11->C_GetAttributeValue(session, key, asked, 4) != CKR_OK);
  HOLDS(asked[0].ulValueLen == 20);
  HOLDS(asked[1].ulValueLen == CK_UNAVAILABLE_INFORMATION && type == 0);
  HOLDS(asked[2].ulValueLen == CK_UNAVAILABLE_INFORMATION);
  HOLDS(asked[3].ulValueLen == 20 && all(value, 20, (CK_BYTE)CKA_SIGN) && all(value + 20, 4, 0xee));
  asked[1].ulValueLen = 3;
  IS(p11->C_GetAttributeValue(session, key, asked + 1, 1), CKR_BUFFER_TOO_SMALL);
  IS(p11->C_GetAttributeValue(session, key, asked + 2, 1), CKR_ATTRIBUTE_TYPE_INVALID);
  IS(p11->C_GetAttributeValue(session, key, NULL, 1), CKR_ARGUMENTS_BAD);
  IS(p11->C_DestroyObject(session, key), CKR_OK);
}

/*
 * --- functions that need no token ----------------------------------------------------------------
 */

static void refused(CK_RV wanted) {
  CK_SLOT_ID slot = 5;
  CK_BYTE state[8];
  CK_ULONG length = sizeof state;
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};

  IS(p11->C_InitToken(0, (CK_UTF8CHAR_PTR) "1", 1, (CK_UTF8CHAR_PTR) "                                "), wanted);
  IS(p11->C_InitPIN(session, (CK_UTF8CHAR_PTR) "1", 1), wanted);
  IS(p11->C_SetPIN(session, (CK_UTF8CHAR_PTR) "1", 1, (CK_UTF8CHAR_PTR) "2", 1), wanted);
  IS(p11->C_GetOperationState(session, state, &length), wanted);
  IS(p11->C_SetOperationState(session, state, length, 0, 0), wanted);
  /* Waiting for what cannot happen is refused, so that no thread waits forever. */
  IS(p11->C_WaitForSlotEvent(0, &slot, NULL), wanted);
  IS(p11->C_MessageSignInit(session, &mechanism, 1), wanted);
  IS(p11->C_MessageVerifyFinal(session), wanted);
  IS(p11->C_VerifySignatureFinal(session), wanted);
  HOLDS(slot == 5);
}

static void parallel(CK_RV wanted, CK_RV event) {
  CK_SLOT_ID slot = 5;

  IS(p11->C_GetFunctionStatus(session), wanted);
  IS(p11->C_CancelFunction(session), wanted);
  IS(p11->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL), event);
}

/*
 * --- login, 5.6, with either function ------------------------------------------------------------
 */

static CK_STATE state_of(CK_SESSION_HANDLE handle) {
  CK_SESSION_INFO info = {0};
  IS(p11->C_GetSessionInfo(handle, &info), CKR_OK);
  return info.state;
}

static CK_RV login(CK_SESSION_HANDLE handle, CK_USER_TYPE user) { return p11->C_Login(handle, user, (CK_UTF8CHAR_PTR) "any", 3); }
static CK_RV login_user(CK_SESSION_HANDLE handle, CK_USER_TYPE user) {
  return p11->C_LoginUser(handle, user, NULL, 0, (CK_UTF8CHAR_PTR) "whoever", 7);
}

static void logins(CK_RV (*in)(CK_SESSION_HANDLE, CK_USER_TYPE)) {
  CK_SESSION_HANDLE reading = 0;
  CK_SESSION_HANDLE late = 0;

  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &reading), CKR_OK);
  HOLDS(state_of(session) == CKS_RW_PUBLIC_SESSION && state_of(reading) == CKS_RO_PUBLIC_SESSION);
  IS(in(reading, 9), CKR_USER_TYPE_INVALID);
  IS(in(session, CKU_SO), CKR_USER_TYPE_INVALID);
  IS(in(session, CKU_CONTEXT_SPECIFIC), CKR_OPERATION_NOT_INITIALIZED);
  IS(in(session + 1000, CKU_USER), CKR_SESSION_HANDLE_INVALID);
  IS(in(reading, CKU_USER), CKR_OK);
  HOLDS(state_of(session) == CKS_RW_USER_FUNCTIONS && state_of(reading) == CKS_RO_USER_FUNCTIONS);
  IS(in(session, CKU_USER), CKR_USER_ALREADY_LOGGED_IN);
  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &late), CKR_OK);
  HOLDS(state_of(late) == CKS_RW_USER_FUNCTIONS);
  IS(p11->C_Logout(late), CKR_OK);
  HOLDS(state_of(session) == CKS_RW_PUBLIC_SESSION && state_of(reading) == CKS_RO_PUBLIC_SESSION);
  IS(p11->C_Logout(reading), CKR_USER_NOT_LOGGED_IN);
  IS(p11->C_CloseSession(reading), CKR_OK);
  IS(p11->C_CloseSession(late), CKR_OK);
}

/*
 * --- versions, 5.4 and 3.0 5.4 -------------------------------------------------------------------
 */

static void versions(CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS)) {
  static const CK_VERSION offered[] = {{2, 40}, {3, 0}, {3, 1}, {3, 2}};
  static const size_t sizes[] = {sizeof(CK_FUNCTION_LIST), sizeof(CK_FUNCTION_LIST_3_0), sizeof(CK_FUNCTION_LIST_3_0),
                                 sizeof(CK_FUNCTION_LIST_3_2)};
  CK_VERSION none = {3, 3};
  CK_INTERFACE_PTR interface;

  for (size_t i = 0; i < 4; i++) {
    CK_VERSION version = offered[i];
    CK_INFO info;
    if (get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0) != CKR_OK) {
      HOLDS(!"the interface is offered");
      continue;
    }
    const CK_FUNCTION_LIST *list = interface->pFunctionList;
    IS(list->C_GetInfo(&info), CKR_OK);
    HOLDS(memcmp(&info.cryptokiVersion, &version, sizeof version) == 0 && memcmp(&list->version, &version, sizeof version) == 0);
    /* Every place has a function. */
    void *const *functions = (void *const *)list;
    for (size_t j = 1; j < sizes[i] / sizeof *functions; j++) HOLDS(functions[j] != NULL);
  }
  IS(get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &none, &interface, 0), CKR_ARGUMENTS_BAD);
  IS(get_interface((CK_UTF8CHAR_PTR) "Vendor", NULL, &interface, 0), CKR_ARGUMENTS_BAD);
}

/* Whether a call is possible at all is checked before its parameter is. */
static void messages_without_init(void) {
  static const struct { CK_SESSION_HANDLE session; CK_RV rv; } rows[] = {{0, CKR_OPERATION_NOT_INITIALIZED}, {99999, CKR_SESSION_HANDLE_INVALID}};
  CK_BYTE data[16] = {0}, out[16];
  CK_ULONG length = sizeof out;

  for (size_t i = 0; i < 2; i++) {
    const CK_SESSION_HANDLE in = rows[i].session == 0 ? session : rows[i].session;

    IS(p11->C_EncryptMessage(in, NULL, 0, NULL, 0, data, sizeof data, out, &length), rows[i].rv);
    IS(p11->C_EncryptMessageBegin(in, NULL, 0, NULL, 0), rows[i].rv);
    IS(p11->C_DecryptMessage(in, NULL, 0, NULL, 0, data, sizeof data, out, &length), rows[i].rv);
    IS(p11->C_DecryptMessageBegin(in, NULL, 0, NULL, 0), rows[i].rv);
  }
}

int main(int count, char **arguments) {
  CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);
  CK_VERSION version = {3, 2};
  CK_INTERFACE_PTR interface;
  void *library;

  if (count != 2) return 99;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 99;
  }
  *(void **)&get_interface = dlsym(library, "C_GetInterface");
  if (get_interface == NULL || get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0) != CKR_OK) return 99;
  p11 = interface->pFunctionList;
  refused(CKR_CRYPTOKI_NOT_INITIALIZED);
  parallel(CKR_CRYPTOKI_NOT_INITIALIZED, CKR_CRYPTOKI_NOT_INITIALIZED);
  IS(p11->C_Initialize(NULL), CKR_OK);
  versions(get_interface);
  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), CKR_OK);
  refused(CKR_FUNCTION_NOT_SUPPORTED);
  parallel(CKR_FUNCTION_NOT_PARALLEL, CKR_NO_EVENT);
  logins(login);
  logins(login_user);
  lists();
  IS(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "any", 3), CKR_OK);
  attribute_values();
  messages_without_init();
  messages(CK_FALSE);
  messages(CK_TRUE);
  output_rules(CK_FALSE);
  output_rules(CK_TRUE);
  IS(p11->C_Finalize(NULL), CKR_OK);
  if (faults == 0) printf("as the standard has it\n");
  return faults;
}
