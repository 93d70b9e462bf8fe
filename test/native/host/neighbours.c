/*
 * A host in whose global scope other libraries have functions of the same names: a second PKCS#11
 * library, a module that stands before others, the library itself in another version. Each list of
 * functions is the library's own, and what it makes is made by its agent.
 *
 * Usage: host-neighbours <library> <answers> <neighbour>... Each neighbour is loaded before, into
 * the global scope, and so is the library. A neighbour that is loaded with PKCS11SPY is one that
 * calls the library; a neighbour "self=<library>" is another version of it, and is used as well.
 */
#include "host.h"

#include <limits.h>

/** CK_INTERFACE, which pkcs11.h of 2.40 does not have. */
struct interface {
  const char *name;
  void *list;
  CK_FLAGS flags;
};

/** A loaded library: its handle, the real path of its file, and its list of functions. */
struct loaded {
  void *library;
  char file[PATH_MAX];
  CK_FUNCTION_LIST_PTR list;
};

static struct loaded load(const char *path) {
  struct loaded loaded = {.library = dlopen(path, RTLD_NOW | RTLD_GLOBAL)};
  CK_C_GetFunctionList list;
  void *symbol;

  if (loaded.library == NULL || realpath(path, loaded.file) == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(1);
  }
  symbol = dlsym(loaded.library, "C_GetFunctionList");
  memcpy(&list, &symbol, sizeof list);
  host_must(list(&loaded.list), "C_GetFunctionList");
  return loaded;
}

static void check_function(const struct loaded *loaded, const void *function) {
  char file[PATH_MAX];
  Dl_info info;

  if (dladdr(function, &info) == 0 || realpath(info.dli_fname, file) == NULL || strcmp(file, loaded->file) != 0) {
    fprintf(stderr, "a function of %s is in %s\n", loaded->file, info.dli_fname);
    _exit(1);
  }
}

/**
 * Checks that each function of a list is in the library's own file; the list begins with its
 * version.
 */
static void check_list(const struct loaded *loaded, const void *list, size_t functions) {
  for (size_t i = 0; i < functions; i++) {
    const void *function;
    memcpy(&function, (const char *)list + sizeof(void *) * (i + 1), sizeof function);
    check_function(loaded, function);
  }
}

static void check_own(const struct loaded *loaded) {
  struct interface interfaces[8];
  CK_ULONG count = COUNT(interfaces);
  CK_RV (*get_list)(struct interface *, CK_ULONG *);
  void *const symbol = dlsym(loaded->library, "C_GetInterfaceList");

  check_list(loaded, loaded->list, sizeof *loaded->list / sizeof(void *) - 1);
  memcpy(&get_list, &symbol, sizeof get_list);
  host_must(get_list(interfaces, &count), "C_GetInterfaceList");
  for (CK_ULONG i = 0; i < count; i++) {
    CK_VERSION version;
    memcpy(&version, interfaces[i].list, sizeof version);
    if (strcmp(interfaces[i].name, "PKCS 11") != 0) check_list(loaded, interfaces[i].list, 1);
    else check_list(loaded, interfaces[i].list, version.major == 2 ? 68 : 92);
  }
}

static void use(const struct loaded *loaded) {
  CK_OBJECT_HANDLE key;
  CK_INFO info;

  p11 = loaded->list;
  host_begin(&answers[0], &key);
  host_must(p11->C_GetInfo(&info), "C_GetInfo");
  if (memcmp(info.manufacturerID, "DKE ", 4) != 0) host_fail("the manufacturer is another one", info.manufacturerID[0]);
}

int main(int argc, char **argv) {
  static const char own[] = "self=";
  struct loaded others[4];
  struct loaded ours;
  size_t count = 0;

  if (argc < 3 || argc - 3 > (int)COUNT(others)) return 2;
  host_read_answers(argv[2]);
  for (int i = 3; i < argc; i++) {
    if (strncmp(argv[i], own, sizeof own - 1) == 0) others[count++] = load(argv[i] + sizeof own - 1);
    else if (dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL) == NULL) host_fail(dlerror(), 0);
  }
  if (getenv("PKCS11SPY") != NULL) {
    /* The one that stands before the library is called in its place. */
    ours = load(argv[3]);
    use(&ours);
    host_must(p11->C_Finalize(NULL), "C_Finalize");
    return 0;
  }
  ours = load(argv[1]);
  check_own(&ours);
  for (size_t i = 0; i < count; i++) check_own(&others[i]);
  use(&ours);
  for (size_t i = 0; i < count; i++) use(&others[i]);
  host_must(ours.list->C_Finalize(NULL), "C_Finalize");
  for (size_t i = 0; i < count; i++) host_must(others[i].list->C_Finalize(NULL), "C_Finalize of the other");
  return 0;
}
