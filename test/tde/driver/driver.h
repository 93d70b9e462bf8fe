/*
 * One process of a simulated database: gen0, fg0, a foreground, lgwr or mrp0. It loads any PKCS#11
 * library by its path and does one step at a time on request of the runner (main.c). The runner
 * decides the steps of a statement and their order (test/tde/instance.ts). What is inferred about
 * the database's calls, such as templates and initial values, comes from a profile.
 *
 *   token.c   the calls to the library, each with a line in the trace
 *   wallet.c  the software keystore: ewallet.p12 and cwallet.sso, in a format of our own
 *   files.c   data files, redo, and the keys of the database, wrapped by a master key
 *
 * Functions return false when they failed, after `refuse` or `refuse_call` with the reason.
 * Plaintext keys are in memory only.
 */
#ifndef DKE_TEST_TDE_DRIVER_H
#define DKE_TEST_TDE_DRIVER_H

#include <pkcs11.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { ID = 34, LONGEST_KEY = 64, BLOCK = 4096 };

/*
 * --- what went wrong -----------------------------------------------------------------------------
 */

bool refuse(const char *why, const char *what);
bool refuse_call(const char *call, CK_RV rv);

/*
 * --- the profile ---------------------------------------------------------------------------------
 */

enum template { GENERATE, FIND_KEY, FIND_DATA, CREATE_DATA, ASK, TEMPLATES };

/** Reads the lines that the runner has written from a profile (test/tde/profile.ts). */
bool profile_read(const char *path);
/**
 * How the initial value of a wrapped key comes about: 'z'ero, 'r'andom, or from the 'i'd of the
 * master key.
 */
char profile_iv(void);
/** Replaces a template: `<type>:<kind>:<number>`, hexadecimal type, separated by commas. */
bool profile_template(const char *name, char *items);

/*
 * --- the token -----------------------------------------------------------------------------------
 */

bool token_trace(const char *path);
bool token_load(const char *library, CK_INFO *info, CK_FLAGS *flags);
bool token_open(const char *pin, bool probe);
bool token_is_open(void);
bool token_close(void);
bool token_finalize(void);
/** The number of master keys with this id. A found handle is cached; `afresh` ignores the cache. */
bool token_find(const char *id, bool afresh, CK_ULONG *found, CK_OBJECT_HANDLE *key);
/** Creates a master key, with the profile's other objects. */
bool token_generate(const char *id, const char *about);
bool token_cipher(const char *id, bool encrypt, CK_MECHANISM_TYPE mechanism, CK_BYTE *iv, CK_BYTE *in, CK_ULONG length, CK_BYTE *out,
                  CK_ULONG *room);
/** What gen0 does every three seconds with the handle that it has. */
bool token_heartbeat(const char *id);
bool token_destroy(const char *id);
/** Changes what the metadata of a master key says: in its object, or in a new one (`again`). */
bool token_tag(const char *id, const char *tag, bool again);
bool token_metadata(const char *id, char *value, size_t size, CK_ULONG *length);

/*
 * --- the software keystore -----------------------------------------------------------------------
 */

bool wallet_create(const char *path, const char *password);
/** A password of NULL opens cwallet.sso. */
bool wallet_open(const char *path, const char *password);
bool wallet_is_open(void);
void wallet_close(void);
bool wallet_change_password(const char *path, const char *old, const char *new);
bool wallet_make_automatic(const char *path, const char *password, const char *target);
bool wallet_add_secret(const char *path, const char *password, const char *name, const char *value);
/** NULL when there is none. */
const char *wallet_secret(const char *name);
bool wallet_generate(const char *path, const char *password, const char *id);
bool wallet_has(const char *id);
bool wallet_cipher(const char *id, bool encrypt, bool padded, const uint8_t *iv, const uint8_t *in, size_t length, uint8_t *out,
                   size_t *room);

/*
 * --- files ---------------------------------------------------------------------------------------
 */

/** Which master key wraps, and how. */
struct under {
  const char *id;
  char keystore; /* 'H' the token, 'F' the wallet */
  CK_MECHANISM_TYPE mechanism;
};

/**
 * `number` is the database's own for the file, by which redo names it: a clone has another than its
 * source, with the same header. `redo` may be NULL.
 */
bool file_create(const char *path, uint32_t number, unsigned bytes, const struct under *under, const char *redo);
bool file_rewrap(const char *path, uint32_t number, const struct under *under, const char *redo);
/**
 * Gives the file a new key, or its first one, or none (`bytes` 0), and writes every block again.
 */
bool file_rekey(const char *path, uint32_t number, unsigned bytes, const struct under *under, const char *redo);
bool file_insert(const char *path, uint32_t number, const char *redo, const char *text, bool lazy, uint64_t *block);
/** Calls `each` with the text of every row. */
bool file_select(const char *path, void (*each)(const char *text, size_t length));
/** Unwraps the file's key as a process does that has nothing cached. */
bool file_unwrap(const char *path);
bool file_describe(const char *path, char *id, char *keystore, unsigned *bytes, uint64_t *blocks);
bool redo_create(const char *path, uint64_t sequence, const struct under *under);
/** `find` answers the path of a file by its number, or NULL when there is none here. */
bool redo_replay(const char *path, const char *(*find)(uint32_t number), uint64_t *applied);
/** Forgets every clear key. */
void files_forget(void);

#endif
