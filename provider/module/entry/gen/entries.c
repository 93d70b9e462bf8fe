/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. One entry point a row. */

#include <string.h>

#include "call/call.h"
#include "call/large_data.h"
#include "connection/library.h"
#include "message/gen/numbers.h"

static void get_ck_slot_info(struct call *call, void *to) {
  CK_SLOT_INFO info;

  memset(&info, 0, sizeof info);
  codec_get_text(&call->reply, info.slotDescription, sizeof info.slotDescription);
  codec_get_text(&call->reply, info.manufacturerID, sizeof info.manufacturerID);
  info.flags = buffer_get_u64(&call->reply);
  codec_get_version(&call->reply, &info.hardwareVersion);
  codec_get_version(&call->reply, &info.firmwareVersion);
  if (call->reply.failed) call->rv = CKR_DEVICE_ERROR;
  else memcpy(to, &info, sizeof info);
}

static void get_ck_token_info(struct call *call, void *to) {
  CK_TOKEN_INFO info;

  memset(&info, 0, sizeof info);
  codec_get_text(&call->reply, info.label, sizeof info.label);
  codec_get_text(&call->reply, info.manufacturerID, sizeof info.manufacturerID);
  codec_get_text(&call->reply, info.model, sizeof info.model);
  codec_get_text(&call->reply, info.serialNumber, sizeof info.serialNumber);
  info.flags = buffer_get_u64(&call->reply);
  info.ulMaxSessionCount = buffer_get_u64(&call->reply);
  info.ulSessionCount = buffer_get_u64(&call->reply);
  info.ulMaxRwSessionCount = buffer_get_u64(&call->reply);
  info.ulRwSessionCount = buffer_get_u64(&call->reply);
  info.ulMaxPinLen = buffer_get_u64(&call->reply);
  info.ulMinPinLen = buffer_get_u64(&call->reply);
  info.ulTotalPublicMemory = buffer_get_u64(&call->reply);
  info.ulFreePublicMemory = buffer_get_u64(&call->reply);
  info.ulTotalPrivateMemory = buffer_get_u64(&call->reply);
  info.ulFreePrivateMemory = buffer_get_u64(&call->reply);
  codec_get_version(&call->reply, &info.hardwareVersion);
  codec_get_version(&call->reply, &info.firmwareVersion);
  codec_get_text(&call->reply, info.utcTime, sizeof info.utcTime);
  if (call->reply.failed) call->rv = CKR_DEVICE_ERROR;
  else memcpy(to, &info, sizeof info);
}

static void get_ck_mechanism_info(struct call *call, void *to) {
  CK_MECHANISM_INFO info;

  memset(&info, 0, sizeof info);
  info.ulMinKeySize = buffer_get_u64(&call->reply);
  info.ulMaxKeySize = buffer_get_u64(&call->reply);
  info.flags = buffer_get_u64(&call->reply);
  if (call->reply.failed) call->rv = CKR_DEVICE_ERROR;
  else memcpy(to, &info, sizeof info);
}

static void get_ck_session_info(struct call *call, void *to) {
  CK_SESSION_INFO info;

  memset(&info, 0, sizeof info);
  info.slotID = buffer_get_u64(&call->reply);
  info.state = buffer_get_u64(&call->reply);
  info.flags = buffer_get_u64(&call->reply);
  info.ulDeviceError = buffer_get_u64(&call->reply);
  if (call->reply.failed) call->rv = CKR_DEVICE_ERROR;
  else memcpy(to, &info, sizeof info);
}

CK_RV C_GetSlotList(CK_BBOOL token_present, CK_SLOT_ID_PTR slots, CK_ULONG_PTR slots_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetSlotList])) {
    call_put_flag(&call, token_present);
    call_put_list(&call, slots, slots_count);
    if (call_run(&call)) {
      call_get_list(&call, slots, slots_count);
    }
  }
  return call_end(&call);
}

CK_RV C_GetSlotInfo(CK_SLOT_ID slot, CK_SLOT_INFO_PTR info) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetSlotInfo])) {
    call_put_ulong(&call, slot);
    call_need(&call, info);
    if (call_run(&call)) {
      get_ck_slot_info(&call, info);
    }
  }
  return call_end(&call);
}

CK_RV C_GetTokenInfo(CK_SLOT_ID slot, CK_TOKEN_INFO_PTR info) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetTokenInfo])) {
    call_put_ulong(&call, slot);
    call_need(&call, info);
    if (call_run(&call)) {
      get_ck_token_info(&call, info);
    }
  }
  return call_end(&call);
}

CK_RV C_GetMechanismList(CK_SLOT_ID slot, CK_MECHANISM_TYPE_PTR mechanisms, CK_ULONG_PTR mechanisms_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetMechanismList])) {
    call_put_ulong(&call, slot);
    call_put_list(&call, mechanisms, mechanisms_count);
    if (call_run(&call)) {
      call_get_list(&call, mechanisms, mechanisms_count);
    }
  }
  return call_end(&call);
}

CK_RV C_GetMechanismInfo(CK_SLOT_ID slot, CK_MECHANISM_TYPE type, CK_MECHANISM_INFO_PTR info) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetMechanismInfo])) {
    call_put_ulong(&call, slot);
    call_put_ulong(&call, type);
    call_need(&call, info);
    if (call_run(&call)) {
      get_ck_mechanism_info(&call, info);
    }
  }
  return call_end(&call);
}

CK_RV C_InitToken(CK_SLOT_ID slot, CK_BYTE_PTR pin, CK_ULONG pin_length, CK_UTF8CHAR_PTR label) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_InitToken])) {
    call_put_ulong(&call, slot);
    call_put_bytes(&call, pin, pin_length);
    call_put_label(&call, label);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_InitPIN(CK_SESSION_HANDLE session, CK_BYTE_PTR pin, CK_ULONG pin_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_InitPIN])) {
    call_put_session(&call, session);
    call_put_bytes(&call, pin, pin_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_SetPIN(CK_SESSION_HANDLE session, CK_BYTE_PTR old_pin, CK_ULONG old_pin_length, CK_BYTE_PTR new_pin, CK_ULONG new_pin_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SetPIN])) {
    call_put_session(&call, session);
    call_put_bytes(&call, old_pin, old_pin_length);
    call_put_bytes(&call, new_pin, new_pin_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_GetSessionInfo(CK_SESSION_HANDLE session, CK_SESSION_INFO_PTR info) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetSessionInfo])) {
    call_put_session(&call, session);
    call_need(&call, info);
    if (call_run(&call)) {
      get_ck_session_info(&call, info);
    }
  }
  return call_end(&call);
}

CK_RV C_GetOperationState(CK_SESSION_HANDLE session, CK_BYTE_PTR state, CK_ULONG_PTR state_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetOperationState])) {
    call_put_session(&call, session);
    call_put_out(&call, state, state_length);
    if (call_run(&call)) {
      call_get_out(&call, state, state_length);
    }
  }
  return call_end(&call);
}

CK_RV C_SetOperationState(CK_SESSION_HANDLE session, CK_BYTE_PTR state, CK_ULONG state_length, CK_OBJECT_HANDLE encryption_key, CK_OBJECT_HANDLE authentication_key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SetOperationState])) {
    call_put_session(&call, session);
    call_put_bytes(&call, state, state_length);
    call_put_ulong(&call, encryption_key);
    call_put_ulong(&call, authentication_key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_CreateObject(CK_SESSION_HANDLE session, CK_ATTRIBUTE_PTR template, CK_ULONG template_count, CK_OBJECT_HANDLE_PTR object) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_CreateObject])) {
    call_put_session(&call, session);
    call_put_template(&call, template, template_count);
    call_need(&call, object);
    if (call_run(&call)) {
      call_get_result(&call, object);
    }
  }
  return call_end(&call);
}

CK_RV C_CopyObject(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG template_count, CK_OBJECT_HANDLE_PTR new_object) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_CopyObject])) {
    call_put_session(&call, session);
    call_put_ulong(&call, object);
    call_put_template(&call, template, template_count);
    call_need(&call, new_object);
    if (call_run(&call)) {
      call_get_result(&call, new_object);
    }
  }
  return call_end(&call);
}

CK_RV C_DestroyObject(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DestroyObject])) {
    call_put_session(&call, session);
    call_put_ulong(&call, object);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_GetObjectSize(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ULONG_PTR size) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetObjectSize])) {
    call_put_session(&call, session);
    call_put_ulong(&call, object);
    call_need(&call, size);
    if (call_run(&call)) {
      call_get_result(&call, size);
    }
  }
  return call_end(&call);
}

CK_RV C_GetAttributeValue(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG template_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GetAttributeValue])) {
    call_put_session(&call, session);
    call_put_ulong(&call, object);
    call_put_query(&call, template, template_count);
    if (call_run(&call)) {
      call_get_query(&call, template, template_count);
    }
  }
  return call_end(&call);
}

CK_RV C_SetAttributeValue(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG template_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SetAttributeValue])) {
    call_put_session(&call, session);
    call_put_ulong(&call, object);
    call_put_template(&call, template, template_count);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_FindObjectsInit(CK_SESSION_HANDLE session, CK_ATTRIBUTE_PTR template, CK_ULONG template_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_FindObjectsInit])) {
    call_put_session(&call, session);
    call_put_template(&call, template, template_count);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_FindObjects(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE_PTR objects, CK_ULONG objects_most, CK_ULONG_PTR objects_count) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_FindObjects])) {
    call_put_session(&call, session);
    call_put_batch(&call, objects, objects_most, objects_count);
    if (call_run(&call)) {
      call_get_list(&call, objects, objects_count);
    }
  }
  return call_end(&call);
}

CK_RV C_FindObjectsFinal(CK_SESSION_HANDLE session) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_FindObjectsFinal])) {
    call_put_session(&call, session);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_EncryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_EncryptInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_Encrypt(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_length, CK_BYTE_PTR encrypted_data, CK_ULONG_PTR encrypted_data_length) {
  struct call call;

  if (large_is(data_length))
    return large_whole(ROW_C_Encrypt, session, data, data_length, encrypted_data, encrypted_data_length);
  if (call_begin(&call, &call_rows[ROW_C_Encrypt])) {
    call_put_session(&call, session);
    call_put_bytes(&call, data, data_length);
    call_put_out(&call, encrypted_data, encrypted_data_length);
    if (call_run(&call)) {
      call_get_out(&call, encrypted_data, encrypted_data_length);
    }
  }
  return call_end(&call);
}

CK_RV C_EncryptUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length, CK_BYTE_PTR encrypted_part, CK_ULONG_PTR encrypted_part_length) {
  struct call call;

  if (large_is(part_length))
    return large_update(ROW_C_EncryptUpdate, session, part, part_length, encrypted_part, encrypted_part_length);
  if (call_begin(&call, &call_rows[ROW_C_EncryptUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_put_out(&call, encrypted_part, encrypted_part_length);
    if (call_run(&call)) {
      call_get_out(&call, encrypted_part, encrypted_part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_EncryptFinal(CK_SESSION_HANDLE session, CK_BYTE_PTR last_encrypted_part, CK_ULONG_PTR last_encrypted_part_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_EncryptFinal])) {
    call_put_session(&call, session);
    call_put_out(&call, last_encrypted_part, last_encrypted_part_length);
    if (call_run(&call)) {
      call_get_out(&call, last_encrypted_part, last_encrypted_part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DecryptInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_Decrypt(CK_SESSION_HANDLE session, CK_BYTE_PTR encrypted_data, CK_ULONG encrypted_data_length, CK_BYTE_PTR data, CK_ULONG_PTR data_length) {
  struct call call;

  if (large_is(encrypted_data_length))
    return large_whole(ROW_C_Decrypt, session, encrypted_data, encrypted_data_length, data, data_length);
  if (call_begin(&call, &call_rows[ROW_C_Decrypt])) {
    call_put_session(&call, session);
    call_put_bytes(&call, encrypted_data, encrypted_data_length);
    call_put_out(&call, data, data_length);
    if (call_run(&call)) {
      call_get_out(&call, data, data_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR encrypted_part, CK_ULONG encrypted_part_length, CK_BYTE_PTR part, CK_ULONG_PTR part_length) {
  struct call call;

  if (large_is(encrypted_part_length))
    return large_update(ROW_C_DecryptUpdate, session, encrypted_part, encrypted_part_length, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_DecryptUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, encrypted_part, encrypted_part_length);
    call_put_out(&call, part, part_length);
    if (call_run(&call)) {
      call_get_out(&call, part, part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptFinal(CK_SESSION_HANDLE session, CK_BYTE_PTR last_part, CK_ULONG_PTR last_part_length) {
  return large_final(ROW_C_DecryptFinal, session, last_part, last_part_length);
}

CK_RV C_DigestInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DigestInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_Digest(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_length, CK_BYTE_PTR digest, CK_ULONG_PTR digest_length) {
  struct call call;

  if (large_is(data_length))
    return large_whole(ROW_C_Digest, session, data, data_length, digest, digest_length);
  if (call_begin(&call, &call_rows[ROW_C_Digest])) {
    call_put_session(&call, session);
    call_put_bytes(&call, data, data_length);
    call_put_out(&call, digest, digest_length);
    if (call_run(&call)) {
      call_get_out(&call, digest, digest_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DigestUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length) {
  struct call call;

  if (large_is(part_length))
    return large_feed(ROW_C_DigestUpdate, session, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_DigestUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_DigestKey(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DigestKey])) {
    call_put_session(&call, session);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_DigestFinal(CK_SESSION_HANDLE session, CK_BYTE_PTR digest, CK_ULONG_PTR digest_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DigestFinal])) {
    call_put_session(&call, session);
    call_put_out(&call, digest, digest_length);
    if (call_run(&call)) {
      call_get_out(&call, digest, digest_length);
    }
  }
  return call_end(&call);
}

CK_RV C_SignInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SignInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_Sign(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_length, CK_BYTE_PTR signature, CK_ULONG_PTR signature_length) {
  struct call call;

  if (large_is(data_length))
    return large_whole(ROW_C_Sign, session, data, data_length, signature, signature_length);
  if (call_begin(&call, &call_rows[ROW_C_Sign])) {
    call_put_session(&call, session);
    call_put_bytes(&call, data, data_length);
    call_put_out(&call, signature, signature_length);
    if (call_run(&call)) {
      call_get_out(&call, signature, signature_length);
    }
  }
  return call_end(&call);
}

CK_RV C_SignUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length) {
  struct call call;

  if (large_is(part_length))
    return large_feed(ROW_C_SignUpdate, session, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_SignUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_SignFinal(CK_SESSION_HANDLE session, CK_BYTE_PTR signature, CK_ULONG_PTR signature_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SignFinal])) {
    call_put_session(&call, session);
    call_put_out(&call, signature, signature_length);
    if (call_run(&call)) {
      call_get_out(&call, signature, signature_length);
    }
  }
  return call_end(&call);
}

CK_RV C_SignRecoverInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SignRecoverInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_SignRecover(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_length, CK_BYTE_PTR signature, CK_ULONG_PTR signature_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SignRecover])) {
    call_put_session(&call, session);
    call_put_bytes(&call, data, data_length);
    call_put_out(&call, signature, signature_length);
    if (call_run(&call)) {
      call_get_out(&call, signature, signature_length);
    }
  }
  return call_end(&call);
}

CK_RV C_VerifyInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_VerifyInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_Verify(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG data_length, CK_BYTE_PTR signature, CK_ULONG signature_length) {
  struct call call;

  if (large_is(data_length))
    return large_verify(ROW_C_Verify, session, data, data_length, signature, signature_length);
  if (call_begin(&call, &call_rows[ROW_C_Verify])) {
    call_put_session(&call, session);
    call_put_bytes(&call, data, data_length);
    call_put_bytes(&call, signature, signature_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_VerifyUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length) {
  struct call call;

  if (large_is(part_length))
    return large_feed(ROW_C_VerifyUpdate, session, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_VerifyUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_VerifyFinal(CK_SESSION_HANDLE session, CK_BYTE_PTR signature, CK_ULONG signature_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_VerifyFinal])) {
    call_put_session(&call, session);
    call_put_bytes(&call, signature, signature_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_VerifyRecoverInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_VerifyRecoverInit])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_VerifyRecover(CK_SESSION_HANDLE session, CK_BYTE_PTR signature, CK_ULONG signature_length, CK_BYTE_PTR data, CK_ULONG_PTR data_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_VerifyRecover])) {
    call_put_session(&call, session);
    call_put_bytes(&call, signature, signature_length);
    call_put_out(&call, data, data_length);
    if (call_run(&call)) {
      call_get_out(&call, data, data_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DigestEncryptUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length, CK_BYTE_PTR encrypted_part, CK_ULONG_PTR encrypted_part_length) {
  struct call call;

  if (large_is(part_length))
    return large_update(ROW_C_DigestEncryptUpdate, session, part, part_length, encrypted_part, encrypted_part_length);
  if (call_begin(&call, &call_rows[ROW_C_DigestEncryptUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_put_out(&call, encrypted_part, encrypted_part_length);
    if (call_run(&call)) {
      call_get_out(&call, encrypted_part, encrypted_part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptDigestUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR encrypted_part, CK_ULONG encrypted_part_length, CK_BYTE_PTR part, CK_ULONG_PTR part_length) {
  struct call call;

  if (large_is(encrypted_part_length))
    return large_update(ROW_C_DecryptDigestUpdate, session, encrypted_part, encrypted_part_length, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_DecryptDigestUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, encrypted_part, encrypted_part_length);
    call_put_out(&call, part, part_length);
    if (call_run(&call)) {
      call_get_out(&call, part, part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_SignEncryptUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR part, CK_ULONG part_length, CK_BYTE_PTR encrypted_part, CK_ULONG_PTR encrypted_part_length) {
  struct call call;

  if (large_is(part_length))
    return large_update(ROW_C_SignEncryptUpdate, session, part, part_length, encrypted_part, encrypted_part_length);
  if (call_begin(&call, &call_rows[ROW_C_SignEncryptUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, part, part_length);
    call_put_out(&call, encrypted_part, encrypted_part_length);
    if (call_run(&call)) {
      call_get_out(&call, encrypted_part, encrypted_part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptVerifyUpdate(CK_SESSION_HANDLE session, CK_BYTE_PTR encrypted_part, CK_ULONG encrypted_part_length, CK_BYTE_PTR part, CK_ULONG_PTR part_length) {
  struct call call;

  if (large_is(encrypted_part_length))
    return large_update(ROW_C_DecryptVerifyUpdate, session, encrypted_part, encrypted_part_length, part, part_length);
  if (call_begin(&call, &call_rows[ROW_C_DecryptVerifyUpdate])) {
    call_put_session(&call, session);
    call_put_bytes(&call, encrypted_part, encrypted_part_length);
    call_put_out(&call, part, part_length);
    if (call_run(&call)) {
      call_get_out(&call, part, part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_GenerateKey(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_ATTRIBUTE_PTR template, CK_ULONG template_count, CK_OBJECT_HANDLE_PTR key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GenerateKey])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_template(&call, template, template_count);
    call_need(&call, key);
    if (call_run(&call)) {
      call_get_result(&call, key);
    }
  }
  return call_end(&call);
}

CK_RV C_GenerateKeyPair(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_ATTRIBUTE_PTR public_template, CK_ULONG public_template_count, CK_ATTRIBUTE_PTR private_template, CK_ULONG private_template_count, CK_OBJECT_HANDLE_PTR public_key, CK_OBJECT_HANDLE_PTR private_key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_GenerateKeyPair])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_template(&call, public_template, public_template_count);
    call_put_template(&call, private_template, private_template_count);
    call_need(&call, public_key);
    call_need(&call, private_key);
    if (call_run(&call)) {
      call_get_result(&call, public_key);
      call_get_result(&call, private_key);
    }
  }
  return call_end(&call);
}

CK_RV C_WrapKey(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE wrapping_key, CK_OBJECT_HANDLE key, CK_BYTE_PTR wrapped_key, CK_ULONG_PTR wrapped_key_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_WrapKey])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, wrapping_key);
    call_put_ulong(&call, key);
    call_put_out(&call, wrapped_key, wrapped_key_length);
    if (call_run(&call)) {
      call_get_out(&call, wrapped_key, wrapped_key_length);
    }
  }
  return call_end(&call);
}

CK_RV C_UnwrapKey(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE unwrapping_key, CK_BYTE_PTR wrapped_key, CK_ULONG wrapped_key_length, CK_ATTRIBUTE_PTR template, CK_ULONG template_count, CK_OBJECT_HANDLE_PTR key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_UnwrapKey])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, unwrapping_key);
    call_put_bytes(&call, wrapped_key, wrapped_key_length);
    call_put_template(&call, template, template_count);
    call_need(&call, key);
    if (call_run(&call)) {
      call_get_result(&call, key);
    }
  }
  return call_end(&call);
}

CK_RV C_DeriveKey(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE base_key, CK_ATTRIBUTE_PTR template, CK_ULONG template_count, CK_OBJECT_HANDLE_PTR key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DeriveKey])) {
    call_put_session(&call, session);
    call_put_mechanism(&call, mechanism);
    call_put_ulong(&call, base_key);
    call_put_template(&call, template, template_count);
    call_need(&call, key);
    if (call_run(&call)) {
      call_get_result(&call, key);
    }
  }
  return call_end(&call);
}

CK_RV C_SeedRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR seed, CK_ULONG seed_length) {
  struct call call;

  if (large_is(seed_length))
    return large_feed(ROW_C_SeedRandom, session, seed, seed_length);
  if (call_begin(&call, &call_rows[ROW_C_SeedRandom])) {
    call_put_session(&call, session);
    call_put_bytes(&call, seed, seed_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR random, CK_ULONG random_length) {
  struct call call;

  if (large_is(random_length))
    return large_fill(ROW_C_GenerateRandom, session, random, random_length);
  if (call_begin(&call, &call_rows[ROW_C_GenerateRandom])) {
    call_put_session(&call, session);
    call_put_fill(&call, random, random_length);
    if (call_run(&call)) {
      call_get_fill(&call, random, random_length);
    }
  }
  return call_end(&call);
}

CK_RV C_MessageEncryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_MessageEncryptInit])) {
    call_put_session(&call, session);
    call_put_message_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_EncryptMessage(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR plaintext, CK_ULONG plaintext_length, CK_BYTE_PTR ciphertext, CK_ULONG_PTR ciphertext_length) {
  struct call call;

  if (large_is_message(associated_data_length, plaintext_length))
    return large_message(ROW_C_EncryptMessage, session, parameter, parameter_length, associated_data, associated_data_length, plaintext, plaintext_length, ciphertext, ciphertext_length);
  if (call_begin(&call, &call_rows[ROW_C_EncryptMessage])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, TAG_WRITTEN);
    call_put_bytes(&call, associated_data, associated_data_length);
    call_put_bytes(&call, plaintext, plaintext_length);
    call_put_out(&call, ciphertext, ciphertext_length);
    if (call_run(&call)) {
      call_get_out(&call, ciphertext, ciphertext_length);
      call_get_message(&call);
    }
  }
  return call_end(&call);
}

CK_RV C_EncryptMessageBegin(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_EncryptMessageBegin])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, TAG_UNUSED);
    call_put_bytes(&call, associated_data, associated_data_length);
    if (call_run(&call)) {
      call_get_message(&call);
    }
  }
  return call_end(&call);
}

CK_RV C_EncryptMessageNext(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR plaintext_part, CK_ULONG plaintext_part_length, CK_BYTE_PTR ciphertext_part, CK_ULONG_PTR ciphertext_part_length, CK_FLAGS flags) {
  struct call call;

  if (large_is(plaintext_part_length))
    return large_message_part(ROW_C_EncryptMessageNext, session, parameter, parameter_length, plaintext_part, plaintext_part_length, ciphertext_part, ciphertext_part_length, flags);
  if (call_begin(&call, &call_rows[ROW_C_EncryptMessageNext])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, (flags & CKF_END_OF_MESSAGE) != 0 ? TAG_WRITTEN : TAG_UNUSED);
    call_put_bytes(&call, plaintext_part, plaintext_part_length);
    call_put_out(&call, ciphertext_part, ciphertext_part_length);
    call_put_ulong(&call, flags);
    if (call_run(&call)) {
      call_get_out(&call, ciphertext_part, ciphertext_part_length);
      call_get_message(&call);
    }
  }
  return call_end(&call);
}

CK_RV C_MessageEncryptFinal(CK_SESSION_HANDLE session) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_MessageEncryptFinal])) {
    call_put_session(&call, session);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_MessageDecryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_MessageDecryptInit])) {
    call_put_session(&call, session);
    call_put_message_mechanism(&call, mechanism);
    call_put_ulong(&call, key);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_DecryptMessage(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length, CK_BYTE_PTR ciphertext, CK_ULONG ciphertext_length, CK_BYTE_PTR plaintext, CK_ULONG_PTR plaintext_length) {
  struct call call;

  if (large_is_message(associated_data_length, ciphertext_length))
    return large_message(ROW_C_DecryptMessage, session, parameter, parameter_length, associated_data, associated_data_length, ciphertext, ciphertext_length, plaintext, plaintext_length);
  if (call_begin(&call, &call_rows[ROW_C_DecryptMessage])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, TAG_READ);
    call_put_bytes(&call, associated_data, associated_data_length);
    call_put_bytes(&call, ciphertext, ciphertext_length);
    call_put_out(&call, plaintext, plaintext_length);
    if (call_run(&call)) {
      call_get_out(&call, plaintext, plaintext_length);
    }
  }
  return call_end(&call);
}

CK_RV C_DecryptMessageBegin(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated_data, CK_ULONG associated_data_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_DecryptMessageBegin])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, TAG_UNUSED);
    call_put_bytes(&call, associated_data, associated_data_length);
    call_run(&call);
  }
  return call_end(&call);
}

CK_RV C_DecryptMessageNext(CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR ciphertext_part, CK_ULONG ciphertext_part_length, CK_BYTE_PTR plaintext_part, CK_ULONG_PTR plaintext_part_length, CK_FLAGS flags) {
  struct call call;

  if (large_is(ciphertext_part_length) || large_is_end(flags, plaintext_part, plaintext_part_length))
    return large_message_part(ROW_C_DecryptMessageNext, session, parameter, parameter_length, ciphertext_part, ciphertext_part_length, plaintext_part, plaintext_part_length, flags);
  if (call_begin(&call, &call_rows[ROW_C_DecryptMessageNext])) {
    call_put_session(&call, session);
    call_put_message(&call, parameter, parameter_length, (flags & CKF_END_OF_MESSAGE) != 0 ? TAG_READ : TAG_UNUSED);
    call_put_bytes(&call, ciphertext_part, ciphertext_part_length);
    call_put_out(&call, plaintext_part, plaintext_part_length);
    call_put_ulong(&call, flags);
    if (call_run(&call)) {
      call_get_out(&call, plaintext_part, plaintext_part_length);
    }
  }
  return call_end(&call);
}

CK_RV C_MessageDecryptFinal(CK_SESSION_HANDLE session) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_MessageDecryptFinal])) {
    call_put_session(&call, session);
    call_run(&call);
  }
  return call_end(&call);
}

/* In the lists of 3.0 and 3.2, and not carried. */

CK_RV C_MessageSignInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_SignMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_SignMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_SignMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_MessageSignFinal(CK_SESSION_HANDLE argument_0) {
  (void)argument_0;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_MessageVerifyInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifyMessage(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifyMessageBegin(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifyMessageNext(CK_SESSION_HANDLE argument_0, CK_VOID_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_MessageVerifyFinal(CK_SESSION_HANDLE argument_0) {
  (void)argument_0;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_EncapsulateKey(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG_PTR argument_6, CK_OBJECT_HANDLE_PTR argument_7) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  (void)argument_7;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_DecapsulateKey(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_ATTRIBUTE_PTR argument_3, CK_ULONG argument_4, CK_BYTE_PTR argument_5, CK_ULONG argument_6, CK_OBJECT_HANDLE_PTR argument_7) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  (void)argument_7;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifySignatureInit(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifySignature(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifySignatureUpdate(CK_SESSION_HANDLE argument_0, CK_BYTE_PTR argument_1, CK_ULONG argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_VerifySignatureFinal(CK_SESSION_HANDLE argument_0) {
  (void)argument_0;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_GetSessionValidationFlags(CK_SESSION_HANDLE argument_0, CK_SESSION_VALIDATION_FLAGS_TYPE argument_1, CK_FLAGS * argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_AsyncComplete(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ASYNC_DATA * argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_AsyncGetID(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG_PTR argument_2) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_AsyncJoin(CK_SESSION_HANDLE argument_0, CK_UTF8CHAR_PTR argument_1, CK_ULONG argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_WrapKeyAuthenticated(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_OBJECT_HANDLE argument_3, CK_BYTE_PTR argument_4, CK_ULONG argument_5, CK_BYTE_PTR argument_6, CK_ULONG_PTR argument_7) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  (void)argument_7;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}

CK_RV C_UnwrapKeyAuthenticated(CK_SESSION_HANDLE argument_0, CK_MECHANISM_PTR argument_1, CK_OBJECT_HANDLE argument_2, CK_BYTE_PTR argument_3, CK_ULONG argument_4, CK_ATTRIBUTE_PTR argument_5, CK_ULONG argument_6, CK_BYTE_PTR argument_7, CK_ULONG argument_8, CK_OBJECT_HANDLE_PTR argument_9) {
  (void)argument_0;
  (void)argument_1;
  (void)argument_2;
  (void)argument_3;
  (void)argument_4;
  (void)argument_5;
  (void)argument_6;
  (void)argument_7;
  (void)argument_8;
  (void)argument_9;
  const CK_RV rv = library_ready();
  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;
}
