/*
 * The master key's side: the PKCS#11 library, its first token, and three functions: create a master
 * key, wrap, unwrap. Each uses its own session, so that nothing stays open between them; a session
 * needs only the library's connection to the agent, which stays. The mechanism is AES-GCM with the
 * key file's head as associated data.
 */
#ifndef DKE_MARIADB_TOKEN_H
#define DKE_MARIADB_TOKEN_H

#include <stddef.h>

#include "failure.h"

enum { TOKEN_IV = 12, TOKEN_TAG = 16, TOKEN_DESCRIPTION = 64 };

struct token {
  void *library;
  void *functions; /* CK_FUNCTION_LIST_PTR */
  unsigned long slot;
  char description[TOKEN_DESCRIPTION];
};

/**
 * Loads the library and initializes it. `config` becomes DKE_PKCS11_CONF of this process unless it
 * is empty.
 */
int token_open(struct token *token, const char *library, const char *config, struct failure *failure);
void token_close(struct token *token);

/** Creates an AES-256 key on the token that never leaves it. */
int token_generate(const struct token *token, const char *label, struct failure *failure);
/** Encrypts; `wrapped` has room for the plaintext and TOKEN_TAG bytes more. */
int token_wrap(const struct token *token, const char *label, const unsigned char iv[TOKEN_IV], const char *head, size_t head_length,
               const unsigned char *keys, size_t length, unsigned char *wrapped, struct failure *failure);
/**
 * Decrypts the output of token_wrap; `keys` has room for `length` bytes, the length without the
 * tag.
 */
int token_unwrap(const struct token *token, const char *label, const unsigned char iv[TOKEN_IV], const char *head, size_t head_length,
                 const unsigned char *wrapped, unsigned char *keys, size_t length, struct failure *failure);

#endif
