/*
 * The process: reads one step a line from standard input (a word and `name=value` pairs, with tabs
 * between) and answers each with a line of JSON on standard output. Ends when its input does. Its
 * arguments are the path of the profile and that of the trace.
 */
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "driver.h"

/*
 * --- the parameters of a step --------------------------------------------------------------------
 */

static char *words[64];
static size_t word_count;

static const char *given(const char *name) {
  const size_t length = strlen(name);
  for (size_t i = 1; i < word_count; i++)
    if (strncmp(words[i], name, length) == 0 && words[i][length] == '=') return words[i] + length + 1;
  return NULL;
}

static const char *text(const char *name) {
  const char *value = given(name);
  return value == NULL ? "" : value;
}

static unsigned long number(const char *name) { return strtoul(text(name), NULL, 0); }
static bool flag(const char *name) { return number(name) != 0; }

static const struct under *under(void) {
  static struct under it;
  it = (struct under){text("id"), text("keystore")[0], number("mechanism")};
  return it.id[0] == 0 ? NULL : &it;
}

/*
 * --- its results ---------------------------------------------------------------------------------
 */

static bool failed;
/* The result of a step, kept until its end, because its rows are written before. */
static FILE *answer;

static void say_text(FILE *to, const char *value, size_t length) {
  putc('"', to);
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)value[i];
    if (c == '"' || c == '\\')
      fprintf(to, "\\%c", c);
    else if (c < 0x20)
      fprintf(to, "\\u%04x", c);
    else
      putc(c, to);
  }
  putc('"', to);
}

static void say_field(const char *name, const char *value) {
  fprintf(answer, ",\"%s\":", name);
  say_text(answer, value, strlen(value));
}

bool refuse(const char *why, const char *what) {
  if (failed) return false;
  failed = true;
  fprintf(answer, ",\"why\":\"%s\"", why);
  say_field("what", what);
  return false;
}

bool refuse_call(const char *call, CK_RV rv) {
  if (failed) return false;
  failed = true;
  fprintf(answer, ",\"why\":\"call\",\"call\":\"%s\",\"rv\":%lu", call, (unsigned long)rv);
  return false;
}

/** Prints a row of a table as a line of its own, before the answer of the step. */
static void say_row(const char *value, size_t length) {
  printf("{\"row\":");
  say_text(stdout, value, length);
  printf("}\n");
}

/** The blanks that fill a field of Cryptoki, cut. */
static void say_padded(const char *name, const CK_UTF8CHAR *value, size_t size) {
  while (size > 0 && value[size - 1] == ' ') size--;
  fprintf(answer, ",\"%s\":", name);
  say_text(answer, (const char *)value, size);
}

/*
 * --- the steps -----------------------------------------------------------------------------------
 */

static bool step_load(void) {
  CK_INFO info;
  CK_FLAGS flags;

  if (!token_load(text("library"), &info, &flags)) return false;
  say_padded("manufacturer", info.manufacturerID, sizeof info.manufacturerID);
  say_padded("description", info.libraryDescription, sizeof info.libraryDescription);
  fprintf(answer, ",\"version\":\"%d.%d\",\"flags\":%lu", info.libraryVersion.major, info.libraryVersion.minor, (unsigned long)flags);
  return true;
}

/** The PIN may lie in the wallet, where an automatic login has it. */
static bool step_open(void) {
  const char *secret = given("secret");
  const char *pin = secret == NULL ? text("pin") : wallet_secret(secret);
  if (pin == NULL) return refuse("no-secret", secret);
  return token_open(pin, flag("probe"));
}

static bool step_find(void) {
  CK_ULONG found = 0;
  CK_OBJECT_HANDLE key;
  if (text("keystore")[0] == 'F')
    found = wallet_has(text("id"));
  else if (!token_find(text("id"), flag("afresh"), &found, &key))
    return false;
  fprintf(answer, ",\"found\":%lu", (unsigned long)found);
  return true;
}

static bool step_generate(void) {
  uint8_t random[16];
  char id[ID + 1];

  if (RAND_bytes(random, sizeof random) != 1) return refuse("random", "id");
  snprintf(id, sizeof id, "%.2s", text("role"));
  for (size_t i = 0; i < sizeof random; i++) snprintf(id + 2 + 2 * i, 3, "%02X", random[i]);
  if (!(text("keystore")[0] == 'F' ? wallet_generate(text("path"), text("password"), id) : token_generate(id, text("about"))))
    return false;
  say_field("id", id);
  return true;
}

static bool step_close(void) {
  files_forget();
  wallet_close();
  return token_close();
}

static bool step_finalize(void) {
  files_forget();
  wallet_close();
  return token_finalize();
}

static bool step_create_file(void) {
  return file_create(text("path"), (uint32_t)number("file"), (unsigned)number("bytes"), under(), given("redo"));
}
static bool step_rewrap(void) { return file_rewrap(text("path"), (uint32_t)number("file"), under(), given("redo")); }
static bool step_rekey(void) { return file_rekey(text("path"), (uint32_t)number("file"), (unsigned)number("bytes"), under(), given("redo")); }

static bool step_insert(void) {
  uint64_t block = 0;
  if (!file_insert(text("path"), (uint32_t)number("file"), text("redo"), text("text"), flag("lazy"), &block)) return false;
  fprintf(answer, ",\"block\":%llu", (unsigned long long)block);
  return true;
}

static bool step_select(void) { return file_select(text("path"), say_row); }

static bool step_unwrap(void) { return file_unwrap(text("path")); }

static bool step_describe(void) {
  char id[ID + 1];
  char keystore;
  unsigned bytes;
  uint64_t blocks;
  if (!file_describe(text("path"), id, &keystore, &bytes, &blocks)) return false;
  say_field("id", id);
  fprintf(answer, ",\"keystore\":\"%c\",\"bytes\":%u,\"blocks\":%llu", keystore, bytes, (unsigned long long)blocks);
  return true;
}

static bool step_create_redo(void) { return redo_create(text("path"), number("sequence"), under()); }

/** Files are given as `file.<number>=<path>`. */
static const char *find_file(uint32_t which) {
  char name[32];
  snprintf(name, sizeof name, "file.%u", which);
  return given(name);
}

static bool step_replay(void) {
  uint64_t applied;
  const bool done = redo_replay(text("redo"), find_file, &applied);
  fprintf(answer, ",\"applied\":%llu", (unsigned long long)applied);
  return done;
}

static bool step_heartbeat(void) { return token_heartbeat(text("id")); }
static bool step_destroy(void) { return token_destroy(text("id")); }
static bool step_template(void) { return profile_template(text("name"), (char *)(uintptr_t)text("items")); }
static bool step_tag(void) { return token_tag(text("id"), text("tag"), flag("again")); }

static bool step_metadata(void) {
  char value[128];
  CK_ULONG length = 0;
  if (!token_metadata(text("id"), value, sizeof value, &length)) return false;
  fprintf(answer, ",\"value\":");
  say_text(answer, value, length);
  return true;
}

/**
 * Bytes in hexadecimal form under a master key, as a key of the database is wrapped and unwrapped.
 */
static bool step_cipher(void) {
  CK_BYTE iv[16] = {0};
  CK_BYTE in[96];
  CK_BYTE out[96];
  CK_ULONG room = sizeof out;
  const char *given_in = text("in");
  const size_t length = strlen(given_in) / 2;

  if (length > sizeof in) return refuse("bytes", given_in);
  for (size_t i = 0; i < length; i++)
    if (sscanf(given_in + 2 * i, "%2hhx", &in[i]) != 1) return refuse("bytes", given_in);
  if (!token_cipher(text("id"), flag("encrypt"), CKM_AES_CBC, iv, in, length, out, &room)) return false;
  fprintf(answer, ",\"value\":\"");
  for (size_t i = 0; i < room; i++) fprintf(answer, "%02x", out[i]);
  fprintf(answer, "\"");
  return true;
}
static bool step_wallet_create(void) { return wallet_create(text("path"), text("password")); }
static bool step_wallet_open(void) { return wallet_open(text("path"), given("password")); }
static bool step_wallet_password(void) { return wallet_change_password(text("path"), text("password"), text("new")); }
static bool step_wallet_automatic(void) { return wallet_make_automatic(text("path"), text("password"), text("target")); }
static bool step_wallet_secret(void) {
  return wallet_add_secret(text("path"), text("password"), text("name"), text("value"));
}

static const struct {
  const char *name;
  bool (*run)(void);
} steps[] = {
    {"load", step_load},
    {"open", step_open},
    {"close", step_close},
    {"finalize", step_finalize},
    {"find", step_find},
    {"generate", step_generate},
    {"create-file", step_create_file},
    {"rewrap", step_rewrap},
    {"rekey", step_rekey},
    {"insert", step_insert},
    {"select", step_select},
    {"unwrap", step_unwrap},
    {"describe", step_describe},
    {"create-redo", step_create_redo},
    {"replay", step_replay},
    {"heartbeat", step_heartbeat},
    {"destroy", step_destroy},
    {"template", step_template},
    {"cipher", step_cipher},
    {"tag", step_tag},
    {"metadata", step_metadata},
    {"wallet-create", step_wallet_create},
    {"wallet-open", step_wallet_open},
    {"wallet-password", step_wallet_password},
    {"wallet-automatic", step_wallet_automatic},
    {"wallet-secret", step_wallet_secret},
};

int main(int count, char **arguments) {
  static char line[65536];
  const char *name = strrchr(arguments[0], '/');

  prctl(PR_SET_NAME, name == NULL ? arguments[0] : name + 1);
  if (count != 3) {
    fprintf(stderr, "usage: %s <profile> <trace>\n", arguments[0]);
    return 2;
  }
  answer = stderr;
  if (!profile_read(arguments[1]) || !token_trace(arguments[2])) return 2;
  while (fgets(line, sizeof line, stdin) != NULL) {
    char *said = NULL;
    size_t size = 0;
    bool done = false;
    char *at = line;

    line[strcspn(line, "\n")] = 0;
    word_count = 0;
    for (char *word; word_count < COUNT(words) && (word = strsep(&at, "\t")) != NULL;) words[word_count++] = word;
    failed = false;
    answer = open_memstream(&said, &size);
    if (answer == NULL) return 2;
    for (size_t i = 0; i < COUNT(steps); i++)
      if (strcmp(words[0], steps[i].name) == 0) {
        done = steps[i].run();
        break;
      } else if (i + 1 == COUNT(steps))
        refuse("step", words[0]);
    fclose(answer);
    printf("{\"ok\":%s%s}\n", done ? "true" : "false", said);
    fflush(stdout);
    free(said);
    OPENSSL_cleanse(line, sizeof line);
  }
  step_finalize();
  return 0;
}
