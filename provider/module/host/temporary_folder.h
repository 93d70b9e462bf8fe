/*
 * A user's folder for a socket in /tmp, which no other user can take away: each user can make a
 * name there that others cannot remove.
 *
 * The rule, for every process of the user: /tmp/dke-pkcs11-<uid>; if that is another user's, or no
 * directory, the first folder in the order of names that begins with /tmp/dke-pkcs11-<uid>- and is
 * the user's own, which is made if there is none. So all processes of a user find the same one. A
 * folder is the user's own if it is a directory, belongs to the user, and gives no other user any
 * right.
 */
#ifndef DKE_TEMPORARY_FOLDER_H
#define DKE_TEMPORARY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum folder_owner { FOLDER_OWN, FOLDER_OF_OTHERS, FOLDER_UNSAFE /* the user's, but not as it must be; or none at all */ };

/** Whose the folder is, which is made if it does not exist. */
enum folder_owner temporary_folder_of(const char *folder, uid_t user);
/** Finds or makes the folder by that rule. False: `folder` names what has to be changed by hand. */
bool temporary_folder(char *folder, size_t size, uid_t user);

#endif
