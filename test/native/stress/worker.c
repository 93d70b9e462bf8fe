/* The thread's random choices, findings and keys; see worker.h. */
#include "worker.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { GUARD_BYTE = 0xa5 };

CK_BBOOL yes = CK_TRUE;
CK_BBOOL no = CK_FALSE;
struct findings findings;
atomic_ulong bytes_compared;
static pthread_mutex_t finding_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * --- random choices ------------------------------------------------------------------------------
 */

uint64_t draw(struct worker *w) { /* xoroshiro128+ */
  const uint64_t a = w->random[0];
  uint64_t b = w->random[1];
  const uint64_t result = a + b;
  b ^= a;
  w->random[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
  w->random[1] = b << 37 | b >> 27;
  return result >> 11;
}
CK_ULONG below(struct worker *w, CK_ULONG limit) { return draw(w) % limit; }
bool once_in(struct worker *w, unsigned n) { return below(w, n) == 0; }

unsigned next_of(atomic_uint *turn, unsigned count) { return atomic_fetch_add(turn, 1) % count; }

void fill(struct worker *w, CK_BYTE *to, CK_ULONG length) {
  for (; length >= 8; to += 8, length -= 8) {
    const uint64_t value = draw(w) * 0x9e3779b97f4a7c15u;
    memcpy(to, &value, 8);
  }
  while (length-- > 0) *to++ = (CK_BYTE)draw(w);
}

static time_t spell(void) { /* of weather */
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec / 2;
}
enum weather weather_now(void) { return (enum weather)(spell() % 4); }
unsigned few_threads(void) { return 1 + (unsigned)(spell() / 4 % 4); }

CK_ULONG size_of_message(struct worker *w, CK_ULONG most) {
  static const CK_ULONG mixture[] = {64, 64, 256, 4096, 4096, 8192, 65536, 65536, 262144, (CK_ULONG)-1};
  CK_ULONG least = 0;
  CK_ULONG limit = (CK_ULONG)-1;

  switch (weather_now()) {
    case MIXED: limit = mixture[below(w, COUNT(mixture))]; break;
    case MIDDLE: limit = once_in(w, 4) ? 4096 : 131072; break;
    case LARGE: least = 262144; break;
    case FEW: limit = once_in(w, 8) ? 524288 : 2048; break;
  }
  if (least > most / 2) least = most / 2;
  if (limit > most) limit = most;
  if (limit <= least) limit = most;
  return least + 1 + below(w, limit - least);
}

/*
 * --- findings ------------------------------------------------------------------------------------
 */

void wrong_result(struct worker *w, const char *what, CK_ULONG at) {
  pthread_mutex_lock(&finding_lock);
  if (findings.wrong_results++ == 0)
    snprintf(findings.first_wrong_result, sizeof findings.first_wrong_result, "%s of %lu bytes: %s at %lu%s", w->job, w->size, what, at,
             w->storm ? " (storm)" : "");
  pthread_mutex_unlock(&finding_lock);
}

/**
 * What a call may return when its agent was stopped or killed: provider/PROTOCOL.md, "When the
 * agent goes away".
 */
static bool storm_allows(CK_RV rv) {
  return rv == CKR_DEVICE_ERROR || rv == CKR_DEVICE_REMOVED || rv == CKR_KEY_HANDLE_INVALID || rv == CKR_OBJECT_HANDLE_INVALID ||
         rv == CKR_OPERATION_NOT_INITIALIZED || rv == CKR_WRAPPING_KEY_HANDLE_INVALID || rv == CKR_UNWRAPPING_KEY_HANDLE_INVALID;
}

bool note(struct worker *w, const char *call, CK_RV rv, CK_RV expected) {
  struct count *count = w->counts;

  while (count->times != 0 && (strcmp(count->call, call) != 0 || count->rv != rv || count->storm != w->storm) && count < w->counts + MOST_COUNTS - 1)
    count++;
  count->call = call;
  count->rv = rv;
  count->storm = w->storm;
  count->times++;
  if (rv == expected) return true;
  if (w->storm && storm_allows(rv)) return false;
  pthread_mutex_lock(&finding_lock);
  if (rv == CKR_KEY_HANDLE_INVALID || rv == CKR_OBJECT_HANDLE_INVALID) findings.lost_keys++;
  if (findings.wrong_returns++ == 0)
    snprintf(findings.first_wrong_return, sizeof findings.first_wrong_return, "%s in %s of %lu bytes: 0x%lx instead of 0x%lx%s", call, w->job,
             w->size, rv, expected, w->storm ? " (storm)" : "");
  pthread_mutex_unlock(&finding_lock);
  return false;
}

void compare(struct worker *w, const CK_BYTE *got, CK_ULONG length, const CK_BYTE *expected, CK_ULONG expected_length) {
  atomic_fetch_add(&bytes_compared, length);
  if (length != expected_length) wrong_result(w, "another length", length);
  else if (memcmp(got, expected, length) != 0)
    for (CK_ULONG i = 0; i < length; i++)
      if (got[i] != expected[i]) {
        wrong_result(w, "wrong byte", i);
        return;
      }
}

static CK_MECHANISM_TYPE all_covered[MOST_MECHANISMS];
static atomic_uint all_covered_count;

static void cover_in_all(CK_MECHANISM_TYPE type) {
  unsigned i = 0;

  pthread_mutex_lock(&finding_lock);
  while (i < all_covered_count && all_covered[i] != type) i++;
  if (i == all_covered_count && i < MOST_MECHANISMS) {
    all_covered[i] = type;
    all_covered_count++;
  }
  pthread_mutex_unlock(&finding_lock);
}

unsigned covered_in_all(void) { return all_covered_count; }

void covered(struct worker *w, CK_MECHANISM_TYPE type) {
  struct mechanism_count *count = w->mechanisms;

  if (w->storm) return;
  while (count->times != 0 && count->type != type && count < w->mechanisms + MOST_MECHANISMS - 1) count++;
  if (count->times == 0) cover_in_all(type);
  count->type = type;
  count->times++;
}

void guard(CK_BYTE *at) { memset(at, GUARD_BYTE, GUARD); }
void check_guard(struct worker *w, const CK_BYTE *at) {
  for (int i = 0; i < GUARD; i++)
    if (at[i] != GUARD_BYTE) {
      wrong_result(w, "written behind the buffer", (CK_ULONG)i);
      return;
    }
}

/*
 * --- keys ----------------------------------------------------------------------------------------
 */

bool compare_value(struct worker *w, CK_OBJECT_HANDLE object, const CK_BYTE *expected, CK_ULONG length) {
  CK_BYTE got[256];
  CK_ATTRIBUTE value = {CKA_VALUE, got, sizeof got};

  TRY(C_GetAttributeValue, w->session, object, &value, 1);
  compare(w, got, value.ulValueLen, expected, length);
  return true;
}

bool create_secret(struct worker *w, bool token, CK_KEY_TYPE type, CK_BYTE *value, CK_ULONG length, CK_OBJECT_HANDLE *key) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_BBOOL *place = token ? &yes : &no;
  CK_BBOOL *cipher = type == CKK_AES ? &yes : &no;
  CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class),     VALUE(CKA_KEY_TYPE, type),  VALUE(CKA_TOKEN, *place),    {CKA_VALUE, value, length},
                             VALUE(CKA_ENCRYPT, *cipher), VALUE(CKA_DECRYPT, *cipher), VALUE(CKA_WRAP, *cipher),   VALUE(CKA_UNWRAP, *cipher),
                             VALUE(CKA_SIGN, yes),        VALUE(CKA_VERIFY, yes),      VALUE(CKA_DERIVE, yes),     VALUE(CKA_SENSITIVE, no),
                             VALUE(CKA_EXTRACTABLE, yes)};

  TRY(C_CreateObject, w->session, template, COUNT(template), key);
  return true;
}

static bool destroy(struct worker *w, CK_OBJECT_HANDLE *key) {
  const CK_OBJECT_HANDLE old = *key;
  *key = 0;
  if (old != 0) TRY(C_DestroyObject, w->session, old);
  return true;
}

bool need_secret(struct worker *w) {
  static const CK_ULONG lengths[] = {16, 24, 32};
  if (w->aes != 0 && w->generic != 0 && !once_in(w, 12)) return true;
  if (!destroy(w, &w->aes) || !destroy(w, &w->generic)) return false;
  w->secret_length = lengths[below(w, COUNT(lengths))];
  fill(w, w->secret, w->secret_length);
  return create_secret(w, false, CKK_GENERIC_SECRET, w->secret, w->secret_length, &w->generic) &&
         create_secret(w, false, CKK_AES, w->secret, w->secret_length, &w->aes);
}

void forget_keys(struct worker *w) {
  w->aes = w->generic = w->rsa_private = w->rsa_public = 0;
  memset(w->curve_private, 0, sizeof w->curve_private);
  memset(w->curve_public, 0, sizeof w->curve_public);
}
