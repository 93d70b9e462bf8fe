/*
 * Which configuration a caller may choose for a program that has more rights than he has
 * (AT_SECURE): a database whose program has the setuid or setgid bit, such as `oracle` with mode
 * 6751 on a host with Grid Infrastructure.
 *
 * Who can choose the value: any local user who may run the program. What proves it: the file is
 * regular, belongs to the effective user, gives no other user any right, and its real path is below
 * a folder of the administrator's: /etc/dke, or one that a file of root's names
 * (/etc/dke/config-folders, a path on each line). So a caller can only choose among files that the
 * program's owner has there, and each choice is in the log. Whose it is: the effective user's. How
 * large: one path. If anything is missing, the value is ignored, and the log says why. What others
 * see: nothing; the reason is in the log of the owner.
 */
#ifndef DKE_SECURE_CONFIG_H
#define DKE_SECURE_CONFIG_H

/** Why the file with this real path may not be chosen there; NULL when it may. */
const char *secure_config_refusal(const char *real);

#endif
