/*
 * For whom the library reads and creates files, connects and starts the agent: the host's effective
 * user; but where that is root, and another user owns pkcs11.toml, that user. So a backup that root
 * makes of a database finds the agent of the database or starts one that is the database's, and
 * what is created belongs to the database. Root gains nothing by it that it did not have, and the
 * owner nothing that is root's: nothing is read, created or run in the owner's folders with root's
 * rights.
 */
#ifndef DKE_ACTING_H
#define DKE_ACTING_H

#include <stdbool.h>
#include <sys/types.h>

/** Decides by the owner of the configuration file. Called where the configuration is read. */
void acting_choose(const char *config);
/** Whether it is for another user than the host's own. */
bool acting_for_owner(void);
uid_t acting_user(void);
gid_t acting_group(void);
/**
 * Between these two, this thread reaches files and sockets with the rights of that user; other
 * threads keep theirs. Nests. Keep errno. A process that it starts in the meantime has its
 * effective user still.
 */
void acting_begin(void);
void acting_end(void);

#endif
