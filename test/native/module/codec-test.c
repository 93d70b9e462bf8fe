/* Buffers and the encoding of arguments, byte by byte. */
#include <string.h>

#include "../tests.h"
#include "host/settings.h"
#include "message/argument_codec.h"

static struct buffer buffer;

static int open_buffer(void **state) {
  (void)state;
  buffer_open(&buffer);
  return 0;
}

static int close_buffer(void **state) {
  (void)state;
  buffer_close(&buffer);
  return 0;
}

#define assert_buffer(...)                                   \
  do {                                                       \
    const unsigned char expected[] = {__VA_ARGS__};          \
    assert_int_equal(buffer.length, sizeof expected);        \
    assert_memory_equal(buffer.data, expected, sizeof expected); \
  } while (0)

#define WITH(test) TEST_WITH(test, open_buffer, close_buffer)

WITH(a_failed_buffer_stays_failed) {
  size_t length;
  buffer_put_u32(&buffer, 5);
  assert_int_equal(buffer_get_u64(&buffer), 0);
  assert_true(buffer.failed);
  assert_int_equal(buffer_get_u8(&buffer), 0);
  assert_null(buffer_get_array(&buffer, &length));
  buffer_put_u8(&buffer, 1);
  assert_int_equal(buffer.length, 4);
}

WITH(a_buffer_grows_to_a_frame_and_no_further) {
  assert_non_null(buffer_extend(&buffer, BUFFER_MAX));
  assert_null(buffer_extend(&buffer, 1));
  assert_true(buffer.failed);
  buffer_reset(&buffer);
  assert_null(buffer_extend(&buffer, SIZE_MAX));
  buffer_reset(&buffer);
  assert_non_null(buffer_extend(&buffer, 1));
}

WITH(an_array_longer_than_the_message_is_refused) {
  size_t length;
  buffer_put_u32(&buffer, 100);
  buffer_put_u8(&buffer, 1);
  assert_null(buffer_get_array(&buffer, &length));
  assert_true(buffer.failed);
}

WITH(attributes_travel_by_their_kind) {
  CK_BBOOL yes = CK_TRUE;
  CK_ULONG number = 0x102;
  CK_ATTRIBUTE inner = {CKA_PRIVATE, &yes, 1};
  CK_ATTRIBUTE attributes[] = {
      {CKA_TOKEN, &yes, 1},
      {CKA_VALUE_LEN, &number, sizeof number},
      {CKA_ID, NULL, 0},
      {CKA_WRAP_TEMPLATE, &inner, sizeof inner},
  };
  assert_int_equal(codec_put_template(&buffer, attributes, 4), CKR_OK);
  assert_buffer(0, 0, 0, 4,
                0, 0, 0, 1, 1, 0, 0, 0, 1, 1,
                0, 0, 1, 0x61, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2,
                0, 0, 1, 2, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
                0x40, 0, 2, 0x11, 1, 0, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1);
}

WITH(templates_that_hold_themselves_are_refused) {
  CK_ATTRIBUTE loop = {CKA_WRAP_TEMPLATE, NULL, sizeof loop};
  loop.pValue = &loop;
  assert_int_equal(codec_put_template(&buffer, &loop, 1), CKR_ATTRIBUTE_VALUE_INVALID);
  buffer_reset(&buffer);
  assert_int_equal(codec_put_query(&buffer, &loop, 1, DIALECT_OWN), CKR_ARGUMENTS_BAD);
}

WITH(gcm_parameters_travel_alike_in_both_layouts) {
  CK_BYTE iv[2] = {7, 8};
  CK_GCM_PARAMS gcm = {iv, 2, 16, NULL, 0, 96};
  struct { CK_BYTE_PTR iv; CK_ULONG iv_length; CK_BYTE_PTR aad; CK_ULONG aad_length; CK_ULONG tag; } old = {iv, 2, NULL, 0, 96};
  CK_MECHANISM mechanism = {CKM_AES_GCM, &gcm, sizeof gcm};
  unsigned char first[64];
  size_t length;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x87, FORM_GCM, 0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 16, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 96);
  length = buffer.length;
  memcpy(first, buffer.data, length);
  buffer_reset(&buffer);
  mechanism = (CK_MECHANISM){CKM_AES_GCM, &old, sizeof old};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_int_equal(buffer.length, length);
  assert_memory_equal(buffer.data, first, length);
}

WITH(a_parameter_of_the_wrong_length_travels_flat_and_to_ours_alone) {
  CK_BYTE junk[3] = {1, 2, 3};
  CK_MECHANISM mechanism = {CKM_RSA_PKCS_PSS, junk, sizeof junk};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0, 0x0d, FORM_BYTES, 0, 0, 0, 3, 1, 2, 3);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_PARAM_INVALID);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_PARAM_INVALID);
  mechanism.mechanism = CKM_SHA256_RSA_PKCS_PSS;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_INVALID);
}

WITH(inner_pointers_are_checked) {
  CK_GCM_PARAMS gcm = {NULL, 12, 96, NULL, 0, 128};
  CK_MECHANISM mechanism = {CKM_AES_GCM, &gcm, sizeof gcm};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
}

WITH(hkdf_parameters_travel_to_ours_alone) {
  CK_BYTE salt[1] = {5};
  CK_BYTE info[2] = {6, 7};
  struct { CK_BBOOL extract, expand; CK_ULONG hash, type; CK_BYTE_PTR salt; CK_ULONG salt_length, key; CK_BYTE_PTR info; CK_ULONG info_length; }
      hkdf = {CK_TRUE, CK_FALSE, CKM_SHA256, 2, salt, sizeof salt, 0, info, sizeof info};
  CK_MECHANISM mechanism = {0x402a, &hkdf, sizeof hkdf};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x40, 0x2a, FORM_HKDF, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0x50, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 2, 6, 7);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_INVALID);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_INVALID);
  buffer_reset(&buffer);
  hkdf.info = NULL;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
}

WITH(ccm_parameters_travel_to_ours_alone) {
  CK_BYTE nonce[2] = {5, 6};
  CK_BYTE aad[1] = {7};
  struct { CK_ULONG data; CK_BYTE_PTR nonce; CK_ULONG nonce_length; CK_BYTE_PTR aad; CK_ULONG aad_length, mac; }
      ccm = {3, nonce, sizeof nonce, aad, sizeof aad, 16};
  CK_MECHANISM mechanism = {CKM_AES_CCM, &ccm, sizeof ccm};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x88, FORM_CCM, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 5, 6, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 16);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_INVALID);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_INVALID);
  buffer_reset(&buffer);
  ccm.aad = NULL;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
}

WITH(eddsa_parameters_travel_to_ours_and_their_absence_to_all) {
  CK_BYTE context[2] = {5, 6};
  struct { CK_BBOOL prehash; CK_ULONG length; CK_BYTE_PTR context; } eddsa = {CK_TRUE, sizeof context, context};
  CK_MECHANISM mechanism = {0x1057, &eddsa, sizeof eddsa};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x57, FORM_EDDSA, 1, 0, 0, 0, 2, 5, 6);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_INVALID);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_INVALID);
  buffer_reset(&buffer);
  eddsa.context = NULL;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
  buffer_reset(&buffer);
  mechanism.pParameter = NULL;
  mechanism.ulParameterLen = 0;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x57, FORM_NONE);
  buffer_reset(&buffer);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x57, 0xff, 0xff, 0xff, 0xff);
}

WITH(data_to_encrypt_travels_to_ours_alone) {
  CK_BYTE data[2] = {5, 6};
  struct { CK_BYTE_PTR data; CK_ULONG length; } string = {data, sizeof data};
  struct { CK_BYTE iv[16]; CK_BYTE_PTR data; CK_ULONG length; } cbc = {{9}, data, sizeof data};
  CK_MECHANISM mechanism = {CKM_AES_ECB_ENCRYPT_DATA, &string, sizeof string};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x11, 0x04, FORM_DATA, 0, 0, 0, 2, 5, 6);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_INVALID);
  buffer_reset(&buffer);
  mechanism = (CK_MECHANISM){CKM_AES_CBC_ENCRYPT_DATA, &cbc, sizeof cbc};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x11, 0x05, FORM_IVDATA, 0, 0, 0, 16, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 6);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_24), CKR_MECHANISM_INVALID);
  buffer_reset(&buffer);
  cbc.data = NULL;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
}

WITH(mechanisms_speak_p11_kit) {
  CK_BYTE iv[16] = {9};
  CK_MECHANISM plain = {CKM_SHA256, NULL, 0};
  CK_MECHANISM cbc = {CKM_AES_CBC, iv, sizeof iv};
  assert_int_equal(codec_put_mechanism(&buffer, &plain, DIALECT_P11KIT_24), CKR_OK);
  assert_buffer(0, 0, 2, 0x50, 0xff, 0xff, 0xff, 0xff);
  buffer_reset(&buffer);
  assert_int_equal(codec_put_mechanism(&buffer, &plain, DIALECT_P11KIT_26), CKR_OK);
  assert_buffer(0, 0, 2, 0x50);
  buffer_reset(&buffer);
  assert_int_equal(codec_put_mechanism(&buffer, &cbc, DIALECT_P11KIT_26), CKR_OK);
  assert_buffer(0, 0, 0x10, 0x82, 1, 0, 0, 0, 16, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void put_answer(CK_ATTRIBUTE_TYPE type, const char *text) {
  buffer_put_u32(&buffer, (uint32_t)type);
  buffer_put_u8(&buffer, text != NULL);
  if (text == NULL) return;
  buffer_put_u32(&buffer, (uint32_t)strlen(text));
  buffer_put_array(&buffer, text, strlen(text));
}

WITH(answers_fill_what_fits_and_tell_the_rest) {
  char label[4] = {0, 0, 0, 'x'};
  char id[1] = {'x'};
  CK_ATTRIBUTE attributes[] = {{CKA_LABEL, label, 3}, {CKA_ID, id, 1}, {CKA_VALUE, NULL, 0}, {CKA_SUBJECT, NULL, 0}};
  buffer_put_u32(&buffer, 4);
  put_answer(CKA_LABEL, "abc");
  put_answer(CKA_ID, "too long");
  put_answer(CKA_VALUE, NULL);
  put_answer(CKA_SUBJECT, "length");
  buffer_put_u64(&buffer, CKR_OK);
  assert_int_equal(codec_get_answers(&buffer, attributes, 4), CKR_BUFFER_TOO_SMALL);
  assert_memory_equal(label, "abcx", 4);
  assert_int_equal(attributes[0].ulValueLen, 3);
  assert_int_equal(id[0], 'x');
  assert_int_equal(attributes[1].ulValueLen, CK_UNAVAILABLE_INFORMATION);
  assert_int_equal(attributes[2].ulValueLen, CK_UNAVAILABLE_INFORMATION);
  assert_int_equal(attributes[3].ulValueLen, 6);
}

/** Eight templates in each other would be a thousand million rows. */
WITH(a_template_that_contains_itself_ends_soon) {
  CK_ATTRIBUTE rows[16];

  for (size_t i = 0; i < 16; i++) rows[i] = (CK_ATTRIBUTE){CKA_WRAP_TEMPLATE, rows, sizeof rows};
  assert_int_equal(codec_put_query(&buffer, rows, 16, DIALECT_OWN), CKR_ARGUMENTS_BAD);
  buffer_reset(&buffer);
  assert_int_equal(codec_put_template(&buffer, rows, 16), CKR_ATTRIBUTE_VALUE_INVALID); /* it is too deep */
}

/** An agent that calls bytes of the caller a template would choose where the library writes. */
WITH(a_value_in_a_template_does_not_become_a_template) {
  CK_ATTRIBUTE inside = {CKA_LABEL, NULL, sizeof inside};
  CK_ATTRIBUTE fake = {CKA_LABEL, &fake, sizeof fake};
  CK_ATTRIBUTE outside = {CKA_WRAP_TEMPLATE, &inside, sizeof inside};

  inside.pValue = &fake; /* what a label's buffer may contain */
  buffer_put_u32(&buffer, 1);
  for (int depth = 0; depth < 2; depth++) {
    buffer_put_u32(&buffer, CKA_WRAP_TEMPLATE);
    buffer_put_u8(&buffer, 1);
    buffer_put_u32(&buffer, sizeof fake);
    buffer_put_u32(&buffer, 1);
  }
  buffer_put_u32(&buffer, CKA_LABEL);
  buffer_put_u8(&buffer, 1);
  buffer_put_u32(&buffer, 4);
  buffer_put_array(&buffer, "evil", 4);
  buffer_put_u64(&buffer, CKR_OK);
  assert_int_equal(codec_get_answers(&buffer, &outside, 1), CKR_DEVICE_ERROR);
  assert_ptr_equal(fake.pValue, &fake);
  assert_int_equal(fake.ulValueLen, sizeof fake);
}

WITH(answers_to_another_question_are_refused) {
  char label[8];
  CK_ATTRIBUTE attribute = {CKA_LABEL, label, sizeof label};
  buffer_put_u32(&buffer, 1);
  put_answer(CKA_ID, "abc");
  buffer_put_u64(&buffer, CKR_OK);
  assert_int_equal(codec_get_answers(&buffer, &attribute, 1), CKR_DEVICE_ERROR);
}

WITH(a_list_longer_than_its_message_is_refused) {
  CK_ULONG list[4];
  CK_ULONG count = 4;
  buffer_put_u8(&buffer, 1);
  buffer_put_u32(&buffer, 0x20000000);
  buffer_put_u64(&buffer, 1);
  assert_int_equal(codec_get_list(&buffer, list, 4, &count), CKR_DEVICE_ERROR);
}

WITH(settings_are_three_integers_before_the_first_table) {
  struct settings settings = {.connect_timeout_ms = 1, .call_timeout_ms = 2, .spin_us = 3};
  settings_scan(&settings,
                "server_url = \"https://x/call_timeout_ms = 5\"\n"
                "  call_timeout_ms=1500 # comment\n"
                "connect_timeout_ms = \"900\"\n"
                "spin_us = -1\n"
                "call_timeout_ms_more = 7\n"
                "[table]\nspin_us = 7\n");
  assert_int_equal(settings.call_timeout_ms, 1500);
  assert_int_equal(settings.connect_timeout_ms, 1);
  assert_int_equal(settings.spin_us, 3);
}

WITH(a_message_parameter_travels_and_comes_back) {
  CK_BYTE iv[3] = {1, 2, 3};
  CK_BYTE tag[14];
  CK_GCM_MESSAGE_PARAMS gcm = {iv, 3, 8, 1, tag, 96};
  struct message_place place;

  memset(tag, 9, sizeof tag);
  assert_int_equal(codec_put_message(&buffer, &gcm, sizeof gcm, TAG_WRITTEN, &place), CKR_OK);
  assert_buffer(1, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96);
  buffer_reset(&buffer);
  buffer_put_array(&buffer, "\4\5\6", 3);
  buffer_put_array(&buffer, "abcdefghijkl", 12);
  assert_int_equal(codec_get_message(&buffer, &place, false), CKR_OK);
  assert_int_equal(iv[0], 1);
  buffer.at = 0;
  assert_int_equal(codec_get_message(&buffer, &place, true), CKR_OK);
  assert_memory_equal(iv, "\4\5\6", 3);
  assert_memory_equal(tag, "abcdefghijkl\11\11", 14);

  /* Neither more nor less than the caller's places have, and nothing where there is none. */
  buffer_reset(&buffer);
  buffer_put_array(&buffer, "\4\5\6\7", 4);
  buffer_put_array(&buffer, NULL, 0);
  assert_int_equal(codec_get_message(&buffer, &place, true), CKR_DEVICE_ERROR);
  buffer_reset(&buffer);
  buffer_put_array(&buffer, NULL, 0);
  buffer_put_array(&buffer, "abcdefghijklmnop", 16);
  assert_int_equal(codec_get_message(&buffer, &place, true), CKR_DEVICE_ERROR);
  buffer.at = 0;
  place.tag = NULL;
  place.tag_length = 16;
  assert_int_equal(codec_get_message(&buffer, &place, true), CKR_DEVICE_ERROR);
  buffer_reset(&buffer);
  assert_int_equal(codec_get_message(&buffer, &place, true), CKR_DEVICE_ERROR);
}

WITH(a_tag_is_read_when_it_is_wanted_and_not_before) {
  CK_BYTE iv[1] = {1};
  CK_BYTE tag[2] = {0xa, 0xb};
  CK_GCM_MESSAGE_PARAMS gcm = {iv, 1, 0, 0, tag, 16};
  struct message_place place;

  assert_int_equal(codec_put_message(&buffer, &gcm, sizeof gcm, TAG_READ, &place), CKR_OK);
  assert_null(place.tag);
  assert_memory_equal(buffer.data + buffer.length - 14, "\0\0\0\2\12\13\0\0\0\0\0\0\0\20", 14);
  buffer_reset(&buffer);
  gcm.pTag = NULL;
  assert_int_equal(codec_put_message(&buffer, &gcm, sizeof gcm, TAG_UNUSED, &place), CKR_OK);
}

WITH(data_for_a_prf_travels_to_ours_alone) {
  struct { CK_BBOOL little; CK_ULONG width; } counter = {CK_TRUE, 16};
  struct { CK_ULONG method; CK_BBOOL little; CK_ULONG width; } length = {2, CK_FALSE, 32};
  CK_BYTE bytes[2] = {5, 6};
  struct { CK_ULONG type; void *value; CK_ULONG length; } data[] = {{1, &counter, sizeof counter}, {3, &length, sizeof length}, {4, bytes, 2}};
  struct { CK_ULONG prf, count; void *data; CK_ULONG more; void *keys; } plain = {0x251, 3, data, 0, NULL};
  struct { CK_ULONG prf, count; void *data; CK_ULONG iv_length; CK_BYTE_PTR iv; CK_ULONG more; void *keys; } feedback = {0x251, 0, NULL, 2, bytes, 7, NULL};
  CK_MECHANISM mechanism = {0x3ac, &plain, sizeof plain};

  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x03, 0xac, FORM_SP800, 0, 0, 0, 0, 0, 0, 2, 0x51, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3,
                0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
                0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff,
                0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 6);
  buffer_reset(&buffer);
  mechanism = (CK_MECHANISM){0x3ad, &feedback, sizeof feedback};
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_OK);
  assert_buffer(0, 0, 0x03, 0xad, FORM_SP800, 0, 0, 0, 0, 0, 0, 2, 0x51, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 5, 6, 0, 0, 0, 0);
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_P11KIT_26), CKR_MECHANISM_INVALID);
  feedback.count = 1;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
  mechanism = (CK_MECHANISM){0x3ac, &plain, sizeof plain};
  plain.count = 65;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
  plain.count = 3;
  data[2].value = NULL;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
  data[2].length = 0;
  data[0].length--;
  assert_int_equal(codec_put_mechanism(&buffer, &mechanism, DIALECT_OWN), CKR_MECHANISM_PARAM_INVALID);
}

/*
 * The agent refuses them once it has checked the operation: here they are only kept from being
 * read.
 */
WITH(a_message_parameter_that_cannot_travel_is_none) {
  CK_BYTE tag[16] = {0};
  CK_GCM_MESSAGE_PARAMS gcm[] = {{tag, 1, 0, 0, NULL, 16}, {tag, 1, 0, 0, tag, 129}, {NULL, 1, 0, 0, tag, 96}};
  struct message_place place;

  for (size_t i = 0; i < 5; i++) {
    const void *parameter = i < 3 ? &gcm[i] : i == 3 ? NULL : &gcm[0];
    const CK_ULONG length = i == 4 ? sizeof *gcm - 1 : sizeof *gcm;

    buffer_reset(&buffer);
    memset(&place, 1, sizeof place);
    assert_int_equal(codec_put_message(&buffer, parameter, length, TAG_READ, &place), CKR_OK);
    assert_int_equal(buffer.length, 1);
    assert_int_equal(buffer.data[0], 0);
    assert_null(place.iv);
    assert_null(place.tag);
    assert_int_equal(place.iv_length, 0);
  }
}

int main(void) { return run_written_tests(NULL, NULL); }
