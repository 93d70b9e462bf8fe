/*
 * A thread of the stress test: its random choices, session and keys, calls and findings. The jobs
 * (ciphers.c, macs.c, pairs.c, derivation.c, wrapping.c, objects.c) use one each; stress.c runs
 * them.
 */
#ifndef DKE_STRESS_WORKER_H
#define DKE_STRESS_WORKER_H

#include <message/cryptoki.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reference.h"

enum { MOST_THREADS = 64, MOST_COUNTS = 256, MOST_MECHANISMS = 160, OVERHEAD = 64, GUARD = 32, MOST_SECRET = 64, CURVES = 12 };

struct count {
  const char *call;
  CK_RV rv;
  bool storm;
  long times;
};
struct mechanism_count {
  CK_MECHANISM_TYPE type;
  long times;
};
struct worker {
  pthread_t thread;
  uint64_t random[2];
  CK_SESSION_HANDLE session; /* 0: none */
  CK_BYTE secret[MOST_SECRET];
  CK_ULONG secret_length;
  CK_OBJECT_HANDLE aes, generic; /* both have the value `secret`; 0: none */
  CK_OBJECT_HANDLE rsa_private, rsa_public, curve_private[CURVES], curve_public[CURVES];
  atomic_uint command; /* the last one that this thread has seen */
  bool storm;
  const char *job;
  CK_ULONG size;
  atomic_long attempts, jobs; /* those that failed in a storm are not jobs */
  struct count counts[MOST_COUNTS];
  struct mechanism_count mechanisms[MOST_MECHANISMS]; /* whose result was compared, in calm weather */
  CK_BYTE *plain, *expected, *got;                    /* `largest` + OVERHEAD + GUARD bytes each */
};

extern CK_FUNCTION_LIST_3_0 *p11;
extern CK_SLOT_ID slot;
extern CK_ULONG largest;
extern struct reference_rsa rsa;

struct findings {
  long wrong_results, wrong_returns, lost_keys;
  char first_wrong_result[256], first_wrong_return[256];
};
extern struct findings findings;
extern atomic_ulong bytes_compared;

/* ---- random choices, repeatable from the seed ---- */
uint64_t draw(struct worker *w);
CK_ULONG below(struct worker *w, CK_ULONG limit);
bool once_in(struct worker *w, unsigned n);
void fill(struct worker *w, CK_BYTE *to, CK_ULONG length);
/** The next of `count`, in turn over all threads, so that a short run covers all. */
unsigned next_of(atomic_uint *turn, unsigned count);
/**
 * What all threads of a process do at the same time, two seconds each: messages of all sizes;
 * answers that just do not fit into the lane; large messages, which fill the socket's buffers; and
 * a few threads with small messages, because a request goes through the lane only while no other
 * call is under way.
 */
enum weather { MIXED, MIDDLE, LARGE, FEW };
enum weather weather_now(void);
/** In the weather FEW: how many threads work. */
unsigned few_threads(void);
/** From 1 to `most` bytes, as the weather is. */
CK_ULONG size_of_message(struct worker *w, CK_ULONG most);

/* ---- findings ---- */
void wrong_result(struct worker *w, const char *what, CK_ULONG at);
/**
 * Counts a call. False when it did not return what was expected: the job ends, and unless the
 * weather excuses it, this is a finding.
 */
bool note(struct worker *w, const char *call, CK_RV rv, CK_RV expected);
#define EXPECT(expected, function, ...)                                            \
  do {                                                                             \
    if (!note(w, #function, p11->function(__VA_ARGS__), expected)) return false;   \
  } while (0)
#define TRY(function, ...) EXPECT(CKR_OK, function, __VA_ARGS__)
void compare(struct worker *w, const CK_BYTE *got, CK_ULONG length, const CK_BYTE *expected, CK_ULONG expected_length);
/** A result of this mechanism was compared. */
void covered(struct worker *w, CK_MECHANISM_TYPE type);
/** How many mechanisms of which a result was compared. */
unsigned covered_in_all(void);
/** The library writes nothing behind the room that it is given. */
void guard(CK_BYTE *at);
void check_guard(struct worker *w, const CK_BYTE *at);

/* ---- templates, keys ---- */
extern CK_BBOOL yes, no;
#define VALUE(type, value) {type, &(value), sizeof(value)}
#define COUNT(array) (sizeof(array) / sizeof *(array))
/** Reads CKA_VALUE into `to`, which has room for `room` bytes, and compares it. */
bool compare_value(struct worker *w, CK_OBJECT_HANDLE object, const CK_BYTE *expected, CK_ULONG length);
/**
 * A secret key of the session, or on the token, with every use that its type allows, whose value
 * may be read.
 */
bool create_secret(struct worker *w, bool token, CK_KEY_TYPE type, CK_BYTE *value, CK_ULONG length, CK_OBJECT_HANDLE *key);
/**
 * Two keys of one value, which changes now and then: one for ciphers, one for HMAC and derivation.
 */
bool need_secret(struct worker *w);
bool need_rsa(struct worker *w);
void forget_keys(struct worker *w);

/* ---- digests ---- */
struct digest {
  const char *name;
  CK_MECHANISM_TYPE digest, hmac, hmac_general;
  /* 0: the standard has none. */
  CK_MECHANISM_TYPE pkcs, pss, ecdsa;
  CK_ULONG mask, kdf;
  CK_MECHANISM_TYPE generation;
  CK_KEY_TYPE key_type;
  bool signs; /* new signatures: not SHA-1 */
};
enum { DIGESTS = 11 };
extern const struct digest digests[DIGESTS];
const struct digest *any_digest(struct worker *w);
enum { SIGNING_DIGESTS = 9 };
/** One that RSA and elliptic curves sign with, by its position. */
const struct digest *signing_digest(unsigned position);
const struct digest *any_signing_digest(struct worker *w);

/* ---- jobs: true when they came to their end ---- */
bool ciphers_job(struct worker *w);
bool messages_job(struct worker *w);
bool dual_job(struct worker *w);
bool digests_job(struct worker *w);
bool macs_job(struct worker *w);
bool rsa_job(struct worker *w);
bool curves_job(struct worker *w);
bool rsa_pair_job(struct worker *w);
bool curve_pair_job(struct worker *w);
bool hkdf_job(struct worker *w);
bool counter_kdf_job(struct worker *w);
bool encryption_kdf_job(struct worker *w);
bool wrapping_job(struct worker *w);
bool random_job(struct worker *w);
bool sessions_job(struct worker *w);
bool objects_job(struct worker *w);
bool generation_job(struct worker *w);
bool token_key_job(struct worker *w);

/** Makes the key pairs of the reference, before any thread starts. */
void prepare_pairs(void);

#endif
