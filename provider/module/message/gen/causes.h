/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. Why a database cannot have its key, as far as the library is who notices. */

#ifndef DKE_CAUSES_H
#define DKE_CAUSES_H

/** Behind each: the facts that log_cause takes, in this order, all of them text. */
enum cause {
  CAUSE_AGENT_MISSING, /* socket, program, error */
  CAUSE_AGENT_START, /* program, error, socket */
  CAUSE_AGENT_LOST, /* socket, error */
  CAUSE_AGENT_SLOW, /* call, limit */
  CAUSE_AGENT_INTERRUPTED, /* call */
  CAUSE_SOCKET_DIRECTORY, /* directory, uid */
  CAUSE_SOCKET_RIGHTS, /* uid, socket, error */
  CAUSE_AGENT_STRANGER, /* socket, uid */
  CAUSE_AGENT_REFUSES, /* socket, config, rv */
  CAUSES
};

struct cause_row {
  const char *name;
  const char *text; /* {} where a fact stands */
  unsigned long rv;
  const char *rv_name;
};

extern const struct cause_row cause_rows[CAUSES];

#endif
