/*
 * The calls to the library, each with a line in the trace: its arguments by type and length, its
 * return value, its duration.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

enum { MOST_ATTRIBUTES = 24, MOST_ROLES = 4, MOST_HANDLES = 2048 };

/*
 * --- the profile ---------------------------------------------------------------------------------
 */

struct slot {
  CK_ATTRIBUTE_TYPE type;
  char kind; /* 'b'ool, 'u'long, 'l'abel, 'v'alue, 'x': so many bytes of 0x5A */
  CK_ULONG number;
};
static struct {
  struct slot slots[MOST_ATTRIBUTES];
  CK_ULONG count;
} templates[TEMPLATES];
static const char *const template_names[TEMPLATES] = {"generate", "find-key", "find-data", "create-data", "ask"};
static struct {
  char id[3];
  char prefix[64];
  char suffix[16];
} roles[MOST_ROLES];
static size_t role_count;
static char metadata_prefix[64];
static char probe_label[64];
static char iv_rule = 'r';
static char heartbeat_rule = 'e';
static CK_ULONG find_most = 2;

char profile_iv(void) { return iv_rule; }

bool profile_template(const char *name, char *items) {
  for (size_t i = 0; i < TEMPLATES; i++) {
    if (strcmp(name, template_names[i]) != 0) continue;
    templates[i].count = 0;
    for (char *item; (item = strsep(&items, ",")) != NULL;) {
      struct slot *next = &templates[i].slots[templates[i].count];
      if (*item == 0) continue;
      if (templates[i].count == MOST_ATTRIBUTES || sscanf(item, "%lx:%c:%lu", &next->type, &next->kind, &next->number) != 3)
        return refuse("profile", item);
      templates[i].count++;
    }
    return true;
  }
  return refuse("profile", name);
}

static bool profile_line(char *line) {
  char *words[5] = {0};
  size_t count = 0;

  for (char *at = line, *word; count < COUNT(words) && (word = strsep(&at, "\t")) != NULL;) words[count++] = word;
  if (strcmp(words[0], "role") == 0 && count == 4 && role_count < MOST_ROLES) {
    snprintf(roles[role_count].id, sizeof roles[role_count].id, "%s", words[1]);
    snprintf(roles[role_count].prefix, sizeof roles[role_count].prefix, "%s", words[2]);
    snprintf(roles[role_count].suffix, sizeof roles[role_count].suffix, "%s", words[3]);
    role_count++;
  } else if (strcmp(words[0], "metadata") == 0 && count == 2)
    snprintf(metadata_prefix, sizeof metadata_prefix, "%s", words[1]);
  else if (strcmp(words[0], "probe") == 0 && count == 2)
    snprintf(probe_label, sizeof probe_label, "%s", words[1]);
  else if (strcmp(words[0], "iv") == 0 && count == 2)
    iv_rule = words[1][0];
  else if (strcmp(words[0], "heartbeat") == 0 && count == 2)
    heartbeat_rule = words[1][0];
  else if (strcmp(words[0], "find-most") == 0 && count == 2)
    find_most = strtoul(words[1], NULL, 10);
  else if (strcmp(words[0], "template") == 0 && count == 5) {
    for (size_t i = 0; i < TEMPLATES; i++)
      if (strcmp(words[1], template_names[i]) == 0 && templates[i].count < MOST_ATTRIBUTES) {
        templates[i].slots[templates[i].count++] =
            (struct slot){strtoul(words[2], NULL, 16), words[3][0], strtoul(words[4], NULL, 10)};
        return true;
      }
    return false;
  } else
    return false;
  return true;
}

bool profile_read(const char *path) {
  FILE *file = fopen(path, "r");
  char line[256];

  if (file == NULL) return refuse("no-profile", path);
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (!profile_line(line)) {
      fclose(file);
      return refuse("profile", line);
    }
  }
  fclose(file);
  return true;
}

/*
 * --- the trace -----------------------------------------------------------------------------------
 */

static CK_FUNCTION_LIST_PTR p11;
static void *library;
static FILE *trace;
static struct timespec begun;
static char detail[1024];

bool token_trace(const char *path) {
  trace = fopen(path, "a");
  return trace != NULL || refuse("trace", path);
}

/** What the next call is given; its clock starts. */
static void begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void begin(const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(detail, sizeof detail, format, rest);
  va_end(rest);
  clock_gettime(CLOCK_MONOTONIC, &begun);
}

/** `more` is the result of the call, or the empty text. */
static CK_RV end(const char *function, CK_RV rv, const char *more) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  if (trace != NULL) {
    const int64_t took = (int64_t)(now.tv_sec - begun.tv_sec) * 1000000000 + (now.tv_nsec - begun.tv_nsec);
    fprintf(trace, "%s\t%s%s\t%lx\t%" PRId64 "\n", function, detail, more, (unsigned long)rv, took);
    fflush(trace);
  }
  return rv;
}

static const char *shape(const CK_ATTRIBUTE *attributes, CK_ULONG count) {
  static char text[768];
  size_t at = 0;

  text[0] = 0;
  for (CK_ULONG i = 0; i < count && at < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%lx:%ld", i == 0 ? "" : ",", (unsigned long)attributes[i].type,
                           (long)attributes[i].ulValueLen);
  return text;
}

/*
 * --- sessions ------------------------------------------------------------------------------------
 */

static CK_SLOT_ID slot;
static CK_SESSION_HANDLE session;
static bool opened;
static struct {
  char id[ID + 1];
  CK_OBJECT_HANDLE key;
} handles[MOST_HANDLES];
static size_t handle_count;

static void forget_handle(const char *id) {
  for (size_t i = 0; i < handle_count; i++)
    if (strcmp(handles[i].id, id) == 0) handles[i] = handles[--handle_count];
}

bool token_is_open(void) { return opened; }

bool token_load(const char *path, CK_INFO *info, CK_FLAGS *flags) {
  CK_C_GetFunctionList list;
  void *symbol;
  CK_RV rv;
  CK_ULONG count = 0;
  CK_SLOT_ID slots[16];
  CK_SLOT_INFO slot_info;
  CK_TOKEN_INFO token_info;
  CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};

  if (library == NULL) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    symbol = library == NULL ? NULL : dlsym(library, "C_GetFunctionList");
    if (symbol == NULL) return refuse("library", path);
    memcpy(&list, &symbol, sizeof list);
    begin("%s", "");
    if ((rv = end("C_GetFunctionList", list(&p11), "")) != CKR_OK) return refuse_call("C_GetFunctionList", rv);
  }
  begin("%s", "");
  rv = end("C_Initialize", p11->C_Initialize(&args), "");
  if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED) return refuse_call("C_Initialize", rv);
  begin("%s", "");
  if ((rv = end("C_GetInfo", p11->C_GetInfo(info), "")) != CKR_OK) return refuse_call("C_GetInfo", rv);
  begin("%s", "");
  rv = end("C_GetSlotList", p11->C_GetSlotList(CK_TRUE, NULL, &count), "");
  if (rv == CKR_OK) {
    count = count > COUNT(slots) ? COUNT(slots) : count;
    begin("%s", "");
    rv = end("C_GetSlotList", p11->C_GetSlotList(CK_TRUE, slots, &count), "");
  }
  if (rv != CKR_OK) return refuse_call("C_GetSlotList", rv);
  if (count == 0) return refuse("no-token", path);
  slot = slots[0];
  begin("%s", "");
  if ((rv = end("C_GetSlotInfo", p11->C_GetSlotInfo(slot, &slot_info), "")) != CKR_OK) return refuse_call("C_GetSlotInfo", rv);
  begin("%s", "");
  if ((rv = end("C_GetTokenInfo", p11->C_GetTokenInfo(slot, &token_info), "")) != CKR_OK) return refuse_call("C_GetTokenInfo", rv);
  *flags = token_info.flags;
  return true;
}

static CK_RV start_session(CK_SESSION_HANDLE *made) {
  begin("%s", "");
  return end("C_OpenSession", p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, made), "");
}

static CK_RV find(CK_ATTRIBUTE *attributes, CK_ULONG count, CK_OBJECT_HANDLE *found, CK_ULONG *number) {
  CK_RV rv;
  CK_RV last;
  char more[64];

  begin("template=%s", shape(attributes, count));
  if ((rv = end("C_FindObjectsInit", p11->C_FindObjectsInit(session, attributes, count), "")) != CKR_OK) return rv;
  *number = 0;
  begin("most=%lu", (unsigned long)find_most);
  rv = p11->C_FindObjects(session, found, find_most, number);
  snprintf(more, sizeof more, " found=%lu", (unsigned long)*number);
  end("C_FindObjects", rv, more);
  begin("%s", "");
  last = end("C_FindObjectsFinal", p11->C_FindObjectsFinal(session), "");
  return rv == CKR_OK ? last : rv;
}

/**
 * Fills a template of the profile. The storage behind it is this function's own, until the next
 * call.
 */
static CK_ULONG fill(enum template which, const char *label, const void *value, CK_ULONG length, CK_ATTRIBUTE *attributes) {
  static CK_BBOOL bools[MOST_ATTRIBUTES];
  static CK_ULONG numbers[MOST_ATTRIBUTES];
  static char text[160];
  static CK_BYTE bytes[128];
  static CK_BYTE filler[64];

  memset(filler, 0x5A, sizeof filler);
  snprintf(text, sizeof text, "%s", label);
  if (length > sizeof bytes) length = sizeof bytes;
  if (value != NULL) memcpy(bytes, value, length);
  for (CK_ULONG i = 0; i < templates[which].count; i++) {
    const struct slot *each = &templates[which].slots[i];
    bools[i] = each->number != 0;
    numbers[i] = each->number;
    attributes[i].type = each->type;
    switch (each->kind) {
    case 'b': attributes[i].pValue = &bools[i], attributes[i].ulValueLen = sizeof bools[i]; break;
    case 'u': attributes[i].pValue = &numbers[i], attributes[i].ulValueLen = sizeof numbers[i]; break;
    case 'l': attributes[i].pValue = text, attributes[i].ulValueLen = strlen(text); break;
    case 'x': attributes[i].pValue = filler, attributes[i].ulValueLen = each->number < sizeof filler ? each->number : sizeof filler; break;
    default: attributes[i].pValue = bytes, attributes[i].ulValueLen = length;
    }
  }
  return templates[which].count;
}

static bool create_data(const char *label, const void *value, CK_ULONG length) {
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_OBJECT_HANDLE object;
  const CK_ULONG count = fill(CREATE_DATA, label, value, length, attributes);
  CK_RV rv;

  begin("template=%s", shape(attributes, count));
  rv = end("C_CreateObject", p11->C_CreateObject(session, attributes, count, &object), "");
  return rv == CKR_OK || refuse_call("C_CreateObject", rv);
}

bool token_open(const char *pin, bool probe) {
  CK_RV rv;
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_OBJECT_HANDLE found[8];
  CK_ULONG number = 0;

  if (opened) return true;
  if (p11 == NULL) return refuse("library", "");
  if ((rv = start_session(&session)) != CKR_OK) return refuse_call("C_OpenSession", rv);
  begin("%s", "");
  rv = end("C_Login", p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR)(uintptr_t)pin, strlen(pin)), "");
  if (rv != CKR_OK && rv != CKR_USER_ALREADY_LOGGED_IN) {
    begin("%s", "");
    end("C_CloseSession", p11->C_CloseSession(session), "");
    return refuse_call("C_Login", rv);
  }
  opened = true;
  if (!probe || probe_label[0] == 0) return true;
  if ((rv = find(attributes, fill(FIND_DATA, probe_label, NULL, 0, attributes), found, &number)) != CKR_OK)
    return refuse_call("C_FindObjects", rv);
  return number > 0 || create_data(probe_label, "1", 1);
}

bool token_close(void) {
  CK_RV rv;

  if (!opened) return true;
  opened = false;
  handle_count = 0;
  begin("%s", "");
  rv = end("C_Logout", p11->C_Logout(session), "");
  begin("%s", "");
  end("C_CloseSession", p11->C_CloseSession(session), "");
  return rv == CKR_OK || refuse_call("C_Logout", rv);
}

bool token_finalize(void) {
  CK_RV rv = CKR_OK;

  opened = false;
  handle_count = 0;
  if (p11 != NULL) {
    begin("%s", "");
    rv = end("C_Finalize", p11->C_Finalize(NULL), "");
  }
  return rv == CKR_OK || rv == CKR_CRYPTOKI_NOT_INITIALIZED || refuse_call("C_Finalize", rv);
}

/*
 * --- master keys ---------------------------------------------------------------------------------
 */

static bool label_of(const char *id, char *label, size_t size) {
  for (size_t i = 0; i < role_count; i++)
    if (strncmp(id, roles[i].id, 2) == 0) {
      snprintf(label, size, "%s%s%s", roles[i].prefix, id, roles[i].suffix);
      return true;
    }
  return refuse("key-id", id);
}

bool token_find(const char *id, bool afresh, CK_ULONG *number, CK_OBJECT_HANDLE *key) {
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_OBJECT_HANDLE found[8];
  char label[160];
  CK_RV rv;

  *number = 1;
  for (size_t i = 0; !afresh && i < handle_count; i++)
    if (strcmp(handles[i].id, id) == 0) {
      *key = handles[i].key;
      return true;
    }
  if (!opened) return refuse("closed", id);
  if (!label_of(id, label, sizeof label)) return false;
  if ((rv = find(attributes, fill(FIND_KEY, label, NULL, 0, attributes), found, number)) != CKR_OK)
    return refuse_call("C_FindObjects", rv);
  forget_handle(id);
  if (*number == 0) return true;
  *key = found[0];
  if (handle_count == MOST_HANDLES) handle_count = 0;
  snprintf(handles[handle_count].id, sizeof handles[handle_count].id, "%s", id);
  handles[handle_count++].key = found[0];
  return true;
}

enum { METADATA_LABEL = 64 + 2 * ID + 1 };

/** The label of a master key's metadata: the id's characters in hexadecimal form. */
static void metadata_label(const char *id, char *name) {
  size_t at = (size_t)snprintf(name, METADATA_LABEL, "%s", metadata_prefix);
  for (size_t i = 0; i < ID && at + 2 < METADATA_LABEL; i++)
    at += (size_t)snprintf(name + at, METADATA_LABEL - at, "%02X", (unsigned)(unsigned char)id[i]);
}

bool token_tag(const char *id, const char *tag, bool again) {
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_ATTRIBUTE value = {CKA_VALUE, (void *)(uintptr_t)tag, strlen(tag)};
  CK_OBJECT_HANDLE found[8];
  CK_ULONG number = 0;
  char name[METADATA_LABEL];
  CK_RV rv;

  if (!opened) return refuse("closed", id);
  metadata_label(id, name);
  if ((rv = find(attributes, fill(FIND_DATA, name, NULL, 0, attributes), found, &number)) != CKR_OK)
    return refuse_call("C_FindObjects", rv);
  if (number != 1) return refuse("no-metadata", name);
  if (again) {
    begin("%s", "");
    if ((rv = end("C_DestroyObject", p11->C_DestroyObject(session, found[0]), "")) != CKR_OK) return refuse_call("C_DestroyObject", rv);
    return create_data(name, tag, strlen(tag));
  }
  begin("template=%s", shape(&value, 1));
  rv = end("C_SetAttributeValue", p11->C_SetAttributeValue(session, found[0], &value, 1), "");
  return rv == CKR_OK || refuse_call("C_SetAttributeValue", rv);
}

bool token_metadata(const char *id, char *value, size_t size, CK_ULONG *length) {
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_ATTRIBUTE wanted = {CKA_VALUE, value, size};
  CK_OBJECT_HANDLE found[8];
  CK_ULONG number = 0;
  char name[METADATA_LABEL];
  CK_RV rv;

  if (!opened) return refuse("closed", id);
  metadata_label(id, name);
  if ((rv = find(attributes, fill(FIND_DATA, name, NULL, 0, attributes), found, &number)) != CKR_OK)
    return refuse_call("C_FindObjects", rv);
  if (number != 1) return refuse("no-metadata", name);
  begin("template=%s", shape(&wanted, 1));
  rv = end("C_GetAttributeValue", p11->C_GetAttributeValue(session, found[0], &wanted, 1), "");
  *length = wanted.ulValueLen;
  return rv == CKR_OK || refuse_call("C_GetAttributeValue", rv);
}

bool token_generate(const char *id, const char *about) {
  CK_ATTRIBUTE attributes[MOST_ATTRIBUTES];
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_OBJECT_HANDLE key = 0;
  char label[160];
  CK_ULONG count;
  CK_RV rv;

  if (!opened) return refuse("closed", id);
  if (!label_of(id, label, sizeof label)) return false;
  count = fill(GENERATE, label, NULL, 0, attributes);
  begin("mechanism=%lx:0 template=%s", (unsigned long)mechanism.mechanism, shape(attributes, count));
  if ((rv = end("C_GenerateKey", p11->C_GenerateKey(session, &mechanism, attributes, count, &key), "")) != CKR_OK)
    return refuse_call("C_GenerateKey", rv);
  if (templates[ASK].count > 0) {
    count = fill(ASK, "", NULL, 0, attributes);
    begin("template=%s", shape(attributes, count));
    rv = end("C_GetAttributeValue", p11->C_GetAttributeValue(session, key, attributes, count), "");
    if (rv != CKR_OK) return refuse_call("C_GetAttributeValue", rv);
    for (CK_ULONG i = 0; i < count; i++) {
      CK_BBOOL is;
      memcpy(&is, attributes[i].pValue, sizeof is);
      if ((is != 0) != (templates[ASK].slots[i].number != 0)) return refuse("attribute", label);
    }
  }
  if (metadata_prefix[0] != 0) {
    char name[METADATA_LABEL];
    metadata_label(id, name);
    if (!create_data(name, about, strlen(about))) return false;
  }
  if (handle_count == MOST_HANDLES) handle_count = 0;
  snprintf(handles[handle_count].id, sizeof handles[handle_count].id, "%s", id);
  handles[handle_count++].key = key;
  return true;
}

bool token_cipher(const char *id, bool encrypt, CK_MECHANISM_TYPE type, CK_BYTE *iv, CK_BYTE *in, CK_ULONG length, CK_BYTE *out,
                  CK_ULONG *room) {
  CK_MECHANISM mechanism = {type, iv, 16};
  CK_OBJECT_HANDLE key = 0;
  CK_ULONG found = 0;
  char more[64];
  CK_RV rv;

  if (!token_find(id, false, &found, &key)) return false;
  if (found == 0) return refuse("no-key", id);
  begin("mechanism=%lx:16", (unsigned long)type);
  rv = encrypt ? end("C_EncryptInit", p11->C_EncryptInit(session, &mechanism, key), "")
               : end("C_DecryptInit", p11->C_DecryptInit(session, &mechanism, key), "");
  if (rv != CKR_OK) return refuse_call(encrypt ? "C_EncryptInit" : "C_DecryptInit", rv);
  begin("in=%lu", (unsigned long)length);
  rv = encrypt ? p11->C_Encrypt(session, in, length, out, room) : p11->C_Decrypt(session, in, length, out, room);
  snprintf(more, sizeof more, rv == CKR_OK ? " out=%lu" : "", (unsigned long)*room);
  end(encrypt ? "C_Encrypt" : "C_Decrypt", rv, more);
  return rv == CKR_OK || refuse_call(encrypt ? "C_Encrypt" : "C_Decrypt", rv);
}

bool token_heartbeat(const char *id) {
  CK_BYTE iv[16] = {0};
  CK_BYTE block[16] = {0};
  CK_BYTE out[32];
  CK_ULONG room = sizeof out;
  CK_ULONG found = 0;
  CK_MECHANISM mechanism = {CKM_AES_CBC, iv, sizeof iv};
  CK_OBJECT_HANDLE key = 0;
  CK_SESSION_HANDLE own;
  CK_RV rv;

  if (heartbeat_rule == 'e') return token_cipher(id, true, CKM_AES_CBC, iv, block, sizeof block, out, &room);
  if (!token_find(id, false, &found, &key)) return false;
  if (found == 0) return refuse("no-key", id);
  if ((rv = start_session(&own)) != CKR_OK) return refuse_call("C_OpenSession", rv);
  begin("mechanism=%lx:16", (unsigned long)mechanism.mechanism);
  rv = end("C_EncryptInit", p11->C_EncryptInit(own, &mechanism, key), "");
  begin("%s", "");
  end("C_CloseSession", p11->C_CloseSession(own), "");
  return rv == CKR_OK || refuse_call("C_EncryptInit", rv);
}

bool token_destroy(const char *id) {
  CK_OBJECT_HANDLE key = 0;
  CK_ULONG found = 0;
  CK_RV rv;

  if (!token_find(id, true, &found, &key)) return false;
  if (found == 0) return refuse("no-key", id);
  begin("%s", "");
  rv = end("C_DestroyObject", p11->C_DestroyObject(session, key), "");
  forget_handle(id);
  return rv == CKR_OK || refuse_call("C_DestroyObject", rv);
}
