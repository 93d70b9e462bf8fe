/*
 * dke_key_management: MariaDB's key management on DKE's PKCS#11 library. The interface to MariaDB:
 * its encryption interface (mysql/ plugin_encryption.h), system variables, status variables and
 * log. Keys are handed out from memory, without a lock that a change holds while it waits for the
 * service. Encryption itself is the server's own (AES-CBC of its OpenSSL): those entries of the
 * interface stay null.
 */
#include <mysql/plugin_encryption.h>
#include <mysql/service_encryption.h>
#include <mysql/service_my_print_error.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "failure.h"
#include "secret.h"
#include "store.h"

/* ER_UNKNOWN_ERROR: the number that goes with a message of our own. */
enum { OWN_MESSAGE = 1105 };

static struct store store;
static bool opened;
/* For the keyring in use: readers are every thread that touches a page. */
static pthread_rwlock_t in_use = PTHREAD_RWLOCK_INITIALIZER;
/* For changes, one at a time. Locked first, also during the call to the service. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static atomic_ulong master_rotations;
static atomic_ulong data_rotations;
static atomic_ulong failures;

/*
 * ---- Settings -----------------------------------------------------------------------------------
 */

static char *set_library;
static char *set_config;
static char *set_label;
static char *set_key_file;
static char *set_import;
static char set_initialize;
static char ask_rotate_master;
static char *ask_rotate_data;
static unsigned int ask_create;

static const char *text_or_empty(const char *text) { return text == NULL ? "" : text; }

/*
 * A backup program loads the plugins of the server it copies, with their settings. It must change
 * nothing.
 */
static bool is_backup_program(void) { return strstr(program_invocation_short_name, "backup") != NULL; }

/* A backup program has no error log and drops such messages: its user reads standard error. */
static void say(unsigned long kind, const char *text) {
  if (is_backup_program()) fprintf(stderr, "dke_key_management: %s\n", text);
  else my_printf_error(OWN_MESSAGE, "dke_key_management: %s", ME_ERROR_LOG_ONLY | kind, text);
}
static void note(const char *text) { say(ME_NOTE, text); }
static void warn(const char *text) { say(ME_WARNING, text); }
static void fail(const char *text) {
  atomic_fetch_add(&failures, 1);
  say(0, text);
}

/*
 * ---- Handing out keys ---------------------------------------------------------------------------
 */

static void publish(struct keyring *ring) {
  struct keyring *old;

  pthread_rwlock_wrlock(&in_use);
  old = store.ring;
  store.ring = ring;
  pthread_rwlock_unlock(&in_use);
  keyring_free(old);
}

/* A backup program may find versions that the server has created since: they are in the file. */
static bool reread(void) {
  struct failure failure;
  struct keyring *ring;

  if (!store.reads_only) return false;
  pthread_mutex_lock(&changing);
  ring = store_reread(&store, &failure);
  if (ring != NULL) publish(ring);
  pthread_mutex_unlock(&changing);
  return ring != NULL;
}

static unsigned int latest_version(unsigned int id) {
  const struct data_key *key;
  unsigned int version;

  pthread_rwlock_rdlock(&in_use);
  key = store.ring == NULL ? NULL : keyring_latest(store.ring, id);
  version = key == NULL ? ENCRYPTION_KEY_VERSION_INVALID : key->version;
  pthread_rwlock_unlock(&in_use);
  return version;
}

static unsigned int copy_key(unsigned int id, unsigned int version, unsigned char *to, unsigned int *length) {
  const struct data_key *key;
  unsigned int result = ENCRYPTION_KEY_VERSION_INVALID;

  pthread_rwlock_rdlock(&in_use);
  key = store.ring == NULL ? NULL : keyring_find(store.ring, id, version);
  if (key != NULL) {
    result = *length < key->length && to != NULL ? ENCRYPTION_KEY_BUFFER_TOO_SMALL : 0;
    *length = key->length;
    if (result == 0 && to != NULL) memcpy(to, store.ring->bytes + key->offset, key->length);
  }
  pthread_rwlock_unlock(&in_use);
  return result;
}

/* MariaDB requests a missing version repeatedly: one line in the log for each version. */
static void complain_once(unsigned int id, unsigned int version) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static unsigned int last_id;
  static unsigned int last_version;
  char text[200];
  bool again;

  pthread_mutex_lock(&lock);
  again = last_id == id && last_version == version;
  last_id = id;
  last_version = version;
  pthread_mutex_unlock(&lock);
  if (again) return;
  snprintf(text, sizeof text, "version %u of key %u is required, but it is not in the key file: check that the file belongs to this database and is not older than it",
           version, id);
  fail(text);
}

static unsigned int get_key(unsigned int id, unsigned int version, unsigned char *to, unsigned int *length) {
  unsigned int result = copy_key(id, version, to, length);

  if (result == ENCRYPTION_KEY_VERSION_INVALID && reread()) result = copy_key(id, version, to, length);
  if (result == ENCRYPTION_KEY_VERSION_INVALID && version != 0) complain_once(id, version);
  return result;
}

/*
 * ---- Changes, requested by SET GLOBAL -----------------------------------------------------------
 */

/* Ends a change: puts the new keyring in use, or reports to client and log why there is none. */
static int conclude(struct keyring *ring, const struct failure *failure, atomic_ulong *counter, const char *done) {
  char text[sizeof failure->text + 64];

  if (ring == NULL) {
    fail(failure->text);
    /* To the client; it is in the log already. */
    my_printf_error(OWN_MESSAGE, "dke_key_management: %s", 0, failure->text);
    return 1;
  }
  snprintf(text, sizeof text, "%s; the master key is '%s', the key file's sequence %" PRIu64, done, ring->master, ring->sequence);
  publish(ring);
  atomic_fetch_add(counter, 1);
  note(text);
  return 0;
}

/* Without the plugin nothing can be changed. */
static bool may_change(struct failure *failure) {
  if (opened && !store.reads_only) return true;
  failure_set(failure, "keys can be changed only by the server, while the plugin is active");
  return false;
}

static int check_rotate_master(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value) {
  struct failure failure;
  struct keyring *ring = NULL;
  long long on = 0;
  int result;

  (void)thd;
  (void)variable;
  if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING) {
    char buffer[8];
    int length = sizeof buffer;
    const char *text = value->val_str(value, buffer, &length);
    if (text != NULL && strcasecmp(text, "ON") == 0) on = 1;
    else if (text == NULL || strcasecmp(text, "OFF") != 0) return 1;
  } else if (value->val_int(value, &on) != 0 || on < 0 || on > 1) {
    return 1;
  }
  *(char *)save = 0;
  if (on == 0) return 0;
  pthread_mutex_lock(&changing);
  if (may_change(&failure)) ring = store_rotate_master(&store, &failure);
  result = conclude(ring, &failure, &master_rotations, "a new master key wraps the data keys");
  pthread_mutex_unlock(&changing);
  return result;
}

/* `all`, or ids with commas between them; -1 for anything else. No ids mean all. */
static int parse_ids(const char *text, uint32_t *ids, size_t room, size_t *count) {
  *count = 0;
  if (strcasecmp(text, "all") == 0) return 0;
  for (;;) {
    char *end;
    unsigned long id;
    if (*text < '0' || *text > '9' || *count == room) return -1;
    errno = 0;
    id = strtoul(text, &end, 10);
    if (errno != 0 || id == 0 || id > UINT32_MAX) return -1;
    ids[(*count)++] = (uint32_t)id;
    if (*end == 0) return 0;
    if (*end != ',') return -1;
    text = end + 1;
  }
}

static int check_rotate_data(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value) {
  struct failure failure;
  struct keyring *ring = NULL;
  char buffer[512];
  int length = sizeof buffer;
  const char *text = value->val_str(value, buffer, &length);
  uint32_t ids[64];
  size_t count;
  int result;

  (void)thd;
  (void)variable;
  *(const char **)save = "";
  if (text == NULL) return 1;
  if (*text == 0) return 0;
  if (parse_ids(text, ids, sizeof ids / sizeof *ids, &count) != 0) {
    my_printf_error(OWN_MESSAGE, "dke_key_management: the value must be 'all' or key ids separated by commas, not '%s'", 0, text);
    return 1;
  }
  pthread_mutex_lock(&changing);
  if (may_change(&failure)) ring = store_rotate_data(&store, ids, count, &failure);
  result = conclude(ring, &failure, &data_rotations, "new versions of data keys are in use");
  pthread_mutex_unlock(&changing);
  return result;
}

static int check_create(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value) {
  struct failure failure;
  struct keyring *ring = NULL;
  long long id;
  int result;

  (void)thd;
  (void)variable;
  if (value->val_int(value, &id) != 0 || id < 0 || id > UINT32_MAX) return 1;
  *(unsigned int *)save = 0;
  if (id == 0) return 0;
  pthread_mutex_lock(&changing);
  if (may_change(&failure)) ring = store_create_data(&store, (uint32_t)id, &failure);
  result = conclude(ring, &failure, &data_rotations, "a data key was created");
  pthread_mutex_unlock(&changing);
  return result;
}

/*
 * The check, which can refuse, has made the change; the variables themselves keep their empty
 * values.
 */
static void forget_wish(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *to, const void *save) {
  (void)thd;
  (void)variable;
  (void)to;
  (void)save;
}

static MYSQL_SYSVAR_STR(pkcs11_library, set_library, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                        "Path of libdke_pkcs11.so", NULL, NULL, "/usr/lib/dke-provider/1.0/libdke_pkcs11.so");
static MYSQL_SYSVAR_STR(pkcs11_config, set_config, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                        "Path of pkcs11.toml. If empty: the value of the environment variable DKE_PKCS11_CONF, otherwise /etc/dke/pkcs11.toml",
                        NULL, NULL, "");
static MYSQL_SYSVAR_STR(master_key_label, set_label, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                        "Prefix of the labels of new master keys", NULL, NULL, "mariadb");
static MYSQL_SYSVAR_STR(key_file, set_key_file, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                        "Absolute path of the file with the wrapped data keys, outside the data directory", NULL, NULL, "");
static MYSQL_SYSVAR_STR(import_file, set_import, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                        "With initialize: an unencrypted key file of file_key_management, or a pipe, whose keys are imported", NULL, NULL, "");
static MYSQL_SYSVAR_BOOL(initialize, set_initialize, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                         "Creates a master key and a key file if there are none yet; only for the first start", NULL, NULL, 0);
static MYSQL_SYSVAR_BOOL(rotate_master_key, ask_rotate_master, PLUGIN_VAR_OPCMDARG,
                         "Set to ON: a new master key wraps the data keys", check_rotate_master, forget_wish, 0);
static MYSQL_SYSVAR_STR(rotate_data_keys, ask_rotate_data, PLUGIN_VAR_RQCMDARG,
                        "Set to 'all' or to key ids separated by commas: each key gets a new version", check_rotate_data, forget_wish, "");
static MYSQL_SYSVAR_UINT(create_data_key, ask_create, PLUGIN_VAR_RQCMDARG, "Set to a key id: this data key is created", check_create,
                         forget_wish, 0, 0, UINT32_MAX, 0);

static struct st_mysql_sys_var *variables[] = {
    MYSQL_SYSVAR(pkcs11_library), MYSQL_SYSVAR(pkcs11_config),     MYSQL_SYSVAR(master_key_label), MYSQL_SYSVAR(key_file),
    MYSQL_SYSVAR(import_file),    MYSQL_SYSVAR(initialize),        MYSQL_SYSVAR(rotate_master_key), MYSQL_SYSVAR(rotate_data_keys),
    MYSQL_SYSVAR(create_data_key), NULL,
};

/*
 * ---- Status -------------------------------------------------------------------------------------
 */

struct facts {
  unsigned long long keys;
  unsigned long long versions;
  unsigned long long sequence;
};

static struct facts facts_now(void) {
  struct facts facts = {0};

  pthread_rwlock_rdlock(&in_use);
  if (store.ring != NULL) facts = (struct facts){keyring_ids(store.ring), store.ring->count, store.ring->sequence};
  pthread_rwlock_unlock(&in_use);
  return facts;
}

/* The server gives each function a buffer of SHOW_VAR_FUNC_BUFF_SIZE (1024) bytes. */
static int show_text(struct st_mysql_show_var *variable, char *buffer, const char *text) {
  snprintf(buffer, 256, "%s", text);
  variable->type = SHOW_CHAR;
  variable->value = buffer;
  return 0;
}
static int show_number(struct st_mysql_show_var *variable, char *buffer, unsigned long long number) {
  memcpy(buffer, &number, sizeof number);
  variable->type = SHOW_ULONGLONG;
  variable->value = buffer;
  return 0;
}

static int show_master(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  char label[KEYRING_LABEL_MAX + 1] = "";

  (void)thd;
  pthread_rwlock_rdlock(&in_use);
  if (store.ring != NULL) memcpy(label, store.ring->master, sizeof label);
  pthread_rwlock_unlock(&in_use);
  return show_text(variable, buffer, label);
}
static int show_library(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_text(variable, buffer, store.token.description);
}
static int show_locked(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_text(variable, buffer, secret_is_locked() ? "ON" : "OFF");
}
static int show_keys(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, facts_now().keys);
}
static int show_versions(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, facts_now().versions);
}
static int show_sequence(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, facts_now().sequence);
}
static int show_master_rotations(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, atomic_load(&master_rotations));
}
static int show_data_rotations(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, atomic_load(&data_rotations));
}
static int show_failures(MYSQL_THD thd, struct st_mysql_show_var *variable, char *buffer) {
  (void)thd;
  return show_number(variable, buffer, atomic_load(&failures));
}

#define STATUS(name, function) {"dke_key_management_" name, (void *)(size_t)(function), SHOW_FUNC}
static struct st_mysql_show_var statuses[] = {
    STATUS("data_key_changes", show_data_rotations),
    STATUS("data_key_versions", show_versions),
    STATUS("data_keys", show_keys),
    STATUS("failures", show_failures),
    STATUS("key_file_sequence", show_sequence),
    STATUS("library", show_library),
    STATUS("master_key", show_master),
    STATUS("master_key_rotations", show_master_rotations),
    STATUS("memory_locked", show_locked),
    {NULL, NULL, SHOW_UNDEF},
};

/*
 * ---- Life ---------------------------------------------------------------------------------------
 */

static int start(void *unused) {
  struct store_settings settings = {
      .library = text_or_empty(set_library),
      .config = text_or_empty(set_config),
      .path = text_or_empty(set_key_file),
      .label = text_or_empty(set_label),
      .import = text_or_empty(set_import),
      .initialize = set_initialize != 0,
      .reads_only = is_backup_program(),
  };
  struct failure remark;
  struct failure failure;
  struct timespec from;
  struct timespec to;
  char text[400];

  (void)unused;
  if (ask_rotate_master != 0 || ask_create != 0 || *text_or_empty(ask_rotate_data) != 0)
    warn("the options that change keys are ignored: change keys with SET GLOBAL");
  ask_rotate_master = 0;
  ask_create = 0;
  ask_rotate_data = NULL;
  clock_gettime(CLOCK_MONOTONIC, &from);
  if (store_open(&store, &settings, &remark, &failure) != 0) {
    fail(failure.text);
    return 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &to);
  opened = true;
  if (*remark.text != 0) warn(remark.text);
  if (!secret_is_locked()) warn("data keys could not be locked in memory: raise LimitMEMLOCK (ulimit -l) of MariaDB");
  if (set_initialize != 0 && store.ring->sequence > 1) warn("initialization is complete: remove initialize from the configuration");
  snprintf(text, sizeof text, "%zu data keys (%zu versions) unwrapped by master key '%s' in %ld ms", keyring_ids(store.ring),
           store.ring->count, store.ring->master, (long)((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000));
  note(text);
  return 0;
}

static int stop(void *unused) {
  (void)unused;
  pthread_mutex_lock(&changing);
  opened = false;
  publish(NULL);
  store_close(&store);
  pthread_mutex_unlock(&changing);
  return 0;
}

static struct st_mariadb_encryption key_management = {
    .interface_version = MariaDB_ENCRYPTION_INTERFACE_VERSION,
    .get_latest_key_version = latest_version,
    .get_key = get_key,
};

#pragma GCC visibility push(default)
maria_declare_plugin(dke_key_management){
    MariaDB_ENCRYPTION_PLUGIN,
    &key_management,
    "dke_key_management",
    "DKE",
    "Data keys wrapped by a master key of DKE, over PKCS#11",
    PLUGIN_LICENSE_GPL, /* at the recipient's choice: LICENSE.md */
    start,
    stop,
    DKE_VERSION_MAJOR << 8 | DKE_VERSION_MINOR,
    statuses,
    variables,
    DKE_VERSION,
    MariaDB_PLUGIN_MATURITY_STABLE,
} maria_declare_plugin_end;
#pragma GCC visibility pop
