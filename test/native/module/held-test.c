/*
 * Inits that are held back until their operation follows: when that is done, and that no one can
 * see it (PROTOCOL.md).
 */
#include "../tests.h"
#include "host/process.h"
#include "message/argument_codec.h"
#include "peer.h"

enum { SESSION_KEY = CODEC_FIRST_SESSION_OBJECT + 5, OTHER_KEY, TOKEN_KEY = 5 };

static struct peer peer;
static CK_SESSION_HANDLE session;
static CK_BYTE out[64];

static int start_with(const char *times) {
  peer_start(&peer);
  peer_configure(&peer, times);
  if (C_Initialize(NULL) != CKR_OK) return -1;
  if (C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session) != CKR_OK) return -1;
  peer.events[0] = 0;
  return 0;
}

static int start(void **state) {
  (void)state;
  return start_with(PATIENT "spin_us = 20\n");
}

static int start_hasty(void **state) {
  (void)state;
  return start_with(HASTY "spin_us = 20\n");
}

static int stop(void **state) {
  (void)state;
  C_Finalize(NULL);
  peer_stop(&peer);
  return 0;
}

static CK_RV init(CK_MECHANISM_TYPE type, CK_BYTE filling, CK_ULONG length, CK_OBJECT_HANDLE key) {
  CK_BYTE parameter[32];
  CK_MECHANISM mechanism = {type, parameter, length};

  memset(parameter, filling, sizeof parameter);
  return C_EncryptInit(session, &mechanism, key);
}

static CK_RV cbc_init(CK_OBJECT_HANDLE key) { return init(CKM_AES_CBC, 0, 16, key); }

static CK_RV encrypt(void) {
  CK_BYTE data[16] = {0};
  CK_ULONG length = sizeof out;
  return C_Encrypt(session, data, sizeof data, out, &length);
}

/** What the agent has got since the last time. */
static const char *events(void) {
  static char seen[sizeof peer.events];

  pthread_mutex_lock(&peer.lock);
  memcpy(seen, peer.events, sizeof seen);
  peer.events[0] = 0;
  pthread_mutex_unlock(&peer.lock);
  return seen;
}

/** From here on the agent would accept the same Init again. */
static void use_once(CK_OBJECT_HANDLE key) {
  assert_int_equal(cbc_init(key), CKR_OK);
  assert_string_equal(events(), "29 ");
  assert_int_equal(encrypt(), CKR_OK);
  assert_string_equal(events(), "30 ");
}

#define WITH(test) TEST_WITH(test, start, stop)
#define UNANSWERED(test) TEST_WITH(test, start_hasty, stop)

WITH(an_init_that_was_accepted_before_travels_with_its_operation) {
  use_once(SESSION_KEY);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(init(CKM_AES_CBC, (CK_BYTE)i, 16, SESSION_KEY), CKR_OK);
    assert_string_equal(events(), "");
    assert_int_equal(encrypt(), CKR_OK);
    assert_string_equal(events(), "29 30 ");
  }
}

WITH(an_iv_of_gcm_or_ccm_that_comes_again_is_sent_at_once) {
  CK_BYTE iv[12] = {1};
  CK_GCM_PARAMS gcm = {.pIv = iv, .ulIvLen = sizeof iv, .ulIvBits = 96, .ulTagBits = 128};
  struct { CK_ULONG data; CK_BYTE_PTR nonce; CK_ULONG nonce_length; CK_BYTE_PTR aad; CK_ULONG aad_length, mac; }
      ccm = {16, iv, sizeof iv, NULL, 0, 16};
  CK_MECHANISM mechanisms[] = {{CKM_AES_GCM, &gcm, sizeof gcm}, {CKM_AES_CCM, &ccm, sizeof ccm}};

  for (int i = 0; i < 4; i++) {
    assert_int_equal(C_EncryptInit(session, &mechanisms[i / 2], SESSION_KEY), CKR_OK);
    assert_string_equal(events(), "29 ");
    assert_int_equal(encrypt(), CKR_OK);
    assert_string_equal(events(), "30 ");
  }
}

WITH(the_init_of_a_token_key_is_sent_at_once) {
  use_once(TOKEN_KEY);
  use_once(TOKEN_KEY);
}

WITH(an_init_that_differs_in_more_than_the_iv_is_sent_at_once) {
  CK_AES_CTR_PARAMS counter = {128, {0}};
  CK_MECHANISM ctr = {CKM_AES_CTR, &counter, sizeof counter};

  use_once(SESSION_KEY);
  use_once(OTHER_KEY);
  assert_int_equal(init(CKM_AES_CBC_PAD, 0, 16, OTHER_KEY), CKR_OK);
  assert_string_equal(events(), "29 ");
  assert_int_equal(encrypt(), CKR_OK);
  assert_int_equal(init(CKM_AES_CBC_PAD, 0, 15, OTHER_KEY), CKR_OK);
  assert_string_equal(events(), "30 29 ");
  assert_int_equal(encrypt(), CKR_OK);

  /* A counter has bits that may be wrong. */
  assert_int_equal(C_EncryptInit(session, &ctr, OTHER_KEY), CKR_OK);
  assert_int_equal(encrypt(), CKR_OK);
  events();
  counter.ulCounterBits = 0;
  assert_int_equal(C_EncryptInit(session, &ctr, OTHER_KEY), CKR_OK);
  assert_string_equal(events(), "29 ");
}

WITH(a_second_init_reaches_the_agent_behind_the_first) {
  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_string_equal(events(), "29 29 ");
}

WITH(an_operation_that_may_be_running_is_not_taken_for_ended) {
  CK_BYTE data[16] = {0};
  CK_ULONG length = 0;

  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(C_Encrypt(session, data, sizeof data, NULL, &length), CKR_OK);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_string_equal(events(), "29 30 29 ");
  assert_int_equal(encrypt(), CKR_OK);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  length = sizeof out;
  assert_int_equal(C_EncryptUpdate(session, data, sizeof data, out, &length), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_string_equal(events(), "30 29 31 29 ");
}

UNANSWERED(an_operation_without_an_answer_is_not_taken_for_ended) {
  use_once(SESSION_KEY);
  peer.silent = 30;
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(encrypt(), CKR_DEVICE_ERROR);
  peer.silent = 0;
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_string_equal(events(), "29 30 29 ");
}

WITH(what_may_change_keys_comes_behind_what_is_held_and_makes_the_next_init_ask) {
  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  C_DestroyObject(session, SESSION_KEY);
  assert_string_equal(events(), "29 22 ");
  assert_int_equal(encrypt(), CKR_OK);
  assert_string_equal(events(), "30 ");
  use_once(SESSION_KEY);
  C_Logout(session);
  assert_string_equal(events(), "19 ");
  use_once(SESSION_KEY);
}

static atomic_bool stopping;

static void *change_keys(void *argument) {
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_OBJECT_HANDLE key;

  (void)argument;
  while (!stopping) {
    C_GenerateKey(session + 1, &mechanism, NULL, 0, &key);
    process_sleep(200); /* while a change is under way nothing is held back */
  }
  return NULL;
}

WITH(what_another_thread_takes_along_is_not_overtaken) {
  enum { CHANGERS = 2, ROUNDS = 10000 };
  pthread_t threads[CHANGERS];

  stopping = false;
  for (int i = 0; i < CHANGERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, change_keys, NULL), 0);
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
    assert_int_equal(encrypt(), CKR_OK);
  }
  stopping = true;
  for (int i = 0; i < CHANGERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(peer.overtaken, 0);
}

WITH(what_changes_nothing_leaves_everything_as_it_is) {
  CK_BYTE random[8];

  use_once(SESSION_KEY);
  assert_int_equal(C_GenerateRandom(session + 1, random, sizeof random), CKR_OK);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(C_GenerateRandom(session + 1, random, sizeof random), CKR_OK);
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_int_equal(encrypt(), CKR_OK);
  assert_string_equal(events(), "64 64 29 64 30 ");
}

WITH(an_agent_lost_meanwhile_gets_the_init_once_and_first) {
  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  peer.drop = 29;
  assert_int_equal(encrypt(), CKR_OK);
  assert_string_equal(events(), "29 1 29 30 ");
  /* The new agent has not accepted it yet. */
  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  peer.drop = 30;
  assert_int_equal(encrypt(), CKR_OK);
  assert_string_equal(events(), "29 30 1 29 30 ");
}

WITH(a_message_of_many_pieces_comes_behind_a_held_init) {
  static CK_BYTE data[900000];
  static CK_BYTE result[900000];
  CK_ULONG length = sizeof result;

  use_once(SESSION_KEY);
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(C_Encrypt(session, data, sizeof data, result, &length), CKR_OK);
  assert_int_equal(length, sizeof data);
  assert_int_equal(result[length - 1], 1);
  assert_string_equal(events(), "29 30 ");
}

WITH(more_is_held_than_one_message_takes) {
  enum { SESSIONS = 300, LENGTH = 3894 }; /* 266 such messages and 4 bytes are 1 MiB */
  static CK_BYTE parameter[LENGTH];
  CK_MECHANISM mechanism = {CKM_VENDOR_DEFINED, parameter, sizeof parameter};
  CK_MECHANISM generation = {CKM_AES_KEY_GEN, NULL, 0};
  CK_SESSION_HANDLE sessions[SESSIONS];
  CK_OBJECT_HANDLE key;
  CK_BYTE data[16] = {0};

  for (int i = 0; i < SESSIONS; i++)
    assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &sessions[i]), CKR_OK);
  for (int i = 0; i < SESSIONS; i++) {
    CK_ULONG length = sizeof out;
    assert_int_equal(C_EncryptInit(sessions[i], &mechanism, SESSION_KEY), CKR_OK);
    assert_int_equal(C_Encrypt(sessions[i], data, sizeof data, out, &length), CKR_OK);
    assert_int_equal(C_EncryptInit(sessions[i], &mechanism, SESSION_KEY), CKR_OK);
  }
  assert_int_equal(peer.begun, 0); /* all of them are held */
  assert_int_equal(C_GenerateKey(session, &generation, NULL, 0, &key), CKR_OK);
  assert_int_equal(peer.begun, SESSIONS);
  assert_int_equal(peer.connections, 1);
}

static CK_RV update(CK_ULONG length) {
  CK_BYTE data[64] = {0};
  CK_ULONG room = sizeof out;
  const CK_RV rv = C_EncryptUpdate(session, data, length, out, &room);
  assert_true(rv != CKR_OK || room == length - length % 16);
  return rv;
}

static CK_RV final(void) {
  CK_ULONG length = sizeof out;
  const CK_RV rv = C_EncryptFinal(session, out, &length);
  assert_true(rv != CKR_OK || length == 0);
  return rv;
}

/** An operation in parts, of which the Final is held back. */
static void use_in_parts(CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE key) {
  peer.parts = 1;
  assert_int_equal(init(type, 0, type == CKM_AES_ECB ? 0 : 16, key), CKR_OK);
  assert_int_equal(update(16), CKR_OK);
  assert_int_equal(update(32), CKR_OK);
  assert_int_equal(final(), CKR_OK);
}

WITH(the_final_of_whole_blocks_travels_with_what_comes_next_in_the_session) {
  CK_BYTE random[8];

  use_in_parts(CKM_AES_CBC, SESSION_KEY);
  assert_string_equal(events(), "29 31 31 ");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
    assert_string_equal(events(), "");
    assert_int_equal(update(48), CKR_OK);
    assert_string_equal(events(), "32 29 31 ");
    assert_int_equal(final(), CKR_OK);
    assert_string_equal(events(), "");
  }
  /* Another session's calls leave it; another key's Init takes it along. */
  assert_int_equal(C_GenerateRandom(session + 1, random, sizeof random), CKR_OK);
  use_in_parts(CKM_AES_ECB, OTHER_KEY);
  assert_string_equal(events(), "64 32 29 31 31 ");
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_string_equal(events(), "32 64 ");
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_string_equal(events(), "64 ");
}

WITH(a_final_that_may_say_something_is_sent) {
  CK_ULONG length = sizeof out;

  peer.parts = 1;
  /* No part at all. */
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(final(), CKR_OK);
  assert_string_equal(events(), "29 32 ");
  /* Incomplete blocks, also when a part before or after them was complete. */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
    assert_int_equal(update(i == 0 ? 24 : 16), CKR_OK);
    assert_int_equal(update(i == 0 ? 16 : 24), CKR_OK);
    assert_int_equal(final(), CKR_OK);
    assert_string_equal(events(), "29 31 31 32 ");
  }
  /* Padding, a counter, a key of the token. */
  use_in_parts(CKM_AES_CBC_PAD, SESSION_KEY);
  assert_string_equal(events(), "29 31 31 32 ");
  use_in_parts(CKM_AES_CTR, SESSION_KEY);
  assert_string_equal(events(), "29 31 31 32 ");
  use_in_parts(CKM_AES_CBC, TOKEN_KEY);
  assert_string_equal(events(), "29 31 31 32 ");
  /* A query for the length, after which the operation continues. */
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(update(16), CKR_OK);
  assert_int_equal(C_EncryptFinal(session, NULL, &length), CKR_OK);
  assert_int_equal(length, 0);
  assert_string_equal(events(), "29 31 32 ");
  assert_int_equal(final(), CKR_OK);
  assert_string_equal(events(), "");
  /* This ends the operation: the next call finds none, and is sent. */
  assert_int_equal(final(), CKR_OK);
  assert_string_equal(events(), "32 32 ");
}

WITH(what_may_change_something_comes_behind_a_held_final) {
  use_in_parts(CKM_AES_CBC, SESSION_KEY);
  C_DestroyObject(session, SESSION_KEY);
  assert_string_equal(events(), "29 31 31 32 22 ");
  /* The part may have ended the operation, so a Final after it is sent. */
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  assert_int_equal(update(16), CKR_OK);
  C_DestroyObject(session, SESSION_KEY);
  final();
  assert_string_equal(events(), "29 31 22 32 ");
  use_in_parts(CKM_AES_CBC, SESSION_KEY);
  C_CloseSession(session);
  assert_string_equal(events(), "29 31 31 32 11 ");
}

WITH(a_held_final_is_not_for_another_agent) {
  use_in_parts(CKM_AES_CBC, SESSION_KEY);
  assert_string_equal(events(), "29 31 31 ");
  assert_int_equal(cbc_init(SESSION_KEY), CKR_OK);
  peer.drop = 32;
  assert_int_equal(update(16), CKR_OK);
  assert_string_equal(events(), "32 1 29 31 ");
  /* An operation that was in the middle is over: no one may say that it ended well. */
  peer.drop = 64;
  C_GenerateRandom(session, out, 8);
  events();
  assert_int_equal(final(), CKR_OK);
  assert_string_equal(events(), "32 ");
}

enum { THREADS = 8, ROUNDS = 300 };

static void *use_many_times(void *data) {
  CK_BYTE block[16] = {0};
  CK_BYTE result[16];
  (void)data;

  for (int i = 0; i < ROUNDS; i++) {
    CK_ULONG length = sizeof result;
    if (cbc_init(SESSION_KEY) != CKR_OK) return "an Init was refused";
    if (C_Encrypt(session, block, sizeof block, result, &length) != CKR_OK) return "an operation was refused";
    if (length != sizeof result || result[0] != 1) return "another thread's answer";
  }
  return NULL;
}

WITH(threads_get_their_answers_whatever_is_held_and_changed_beside_them) {
  pthread_t threads[THREADS];
  void *result;

  use_once(SESSION_KEY);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_many_times, NULL), 0);
  for (int i = 0; i < ROUNDS; i++) C_DestroyObject(session, OTHER_KEY);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &result);
    if (result != NULL) fail_msg("%s", (const char *)result);
  }
}

int main(void) { return run_written_tests(NULL, NULL); }
