#include "root/token_login.h"

#include <dlfcn.h>

namespace dke {
namespace {

using Function = void (*)();
using Login = unsigned long (*)(unsigned long session, unsigned long user, unsigned char* pin, unsigned long length);

// The head of CK_FUNCTION_LIST, which no version changes: a version of two bytes, then the
// functions in the order of the standard.
struct FunctionList {
  unsigned char version[2];
  Function functions[68];
};
constexpr size_t kLogin = 18;
constexpr unsigned long kUser = 1;

}  // namespace

Result<unsigned long> LoginToken(const std::string& module, unsigned long session, const uint8_t* pin, size_t length) {
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return Status(Code::kIo, module + " is not loaded");
  const auto list_of = reinterpret_cast<unsigned long (*)(FunctionList**)>(dlsym(library, "C_GetFunctionList"));
  FunctionList* list = nullptr;
  const bool found = list_of != nullptr && list_of(&list) == 0 && list != nullptr;
  // The process that loaded it keeps it.
  dlclose(library);
  if (!found) return Status(Code::kIo, module + " is not a PKCS#11 library");
  const auto login = reinterpret_cast<Login>(list->functions[kLogin]);
  // The interface takes it as changeable, and does not change it.
  return login(session, kUser, const_cast<unsigned char*>(pin), length);
}

}  // namespace dke
