/*
 * From no connection to one: which socket, who sits there, which version; starting the agent when
 * there is none; and the hello that makes it ours.
 */
#ifndef DKE_CONNECT_H
#define DKE_CONNECT_H

#include "host/settings.h"
#include "message/argument_codec.h"

/**
 * Connects, starts the agent if it must, says hello (C_Initialize) and puts the connection to use.
 * CKR_DEVICE_REMOVED when no agent can be had, else what the agent answered. Takes at most the
 * connect timeout, 15 seconds for a start, and the call timeout; when the host `starts`, also the
 * time that it is willing to wait for the service.
 */
CK_RV connect_agent(const struct settings *settings, bool starts);
/** In a forked child: closes what a thread of the parent was connecting. */
void connect_forget(void);
/** How the peer of the last connection speaks. */
enum dialect connect_dialect(void);

/**
 * The socket to use: DKE_PKCS11_SOCKET, /run/dke-pkcs11/agent.sock, or one in a folder of the
 * user's. False: none is safe.
 */
bool connect_socket_path(const struct settings *settings, char *path, size_t size);

#endif
