// Reading a file with the rights of its user (user_files.h): what it does to the process that
// reads.
#include "base/user_files.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support.h"

namespace dke {
namespace {

// A system with fs.suid_dumpable other than 0, as systemd sets it, dumps again what acts as another
// user. Without CAP_SETUID nothing changes, and the test shows only that reading works.
TEST(DumpsStayForbiddenWhileFilesAreReadAsAnotherUser) {
  const pid_t child = fork();
  if (child == 0) {
    ForbidDumps();
    UserFile file;
    const uint32_t user = geteuid() == 0 ? 65534 : geteuid();
    std::thread reader([&] { file = ReadUserFile({{user, user, {}}, "/etc/passwd", false, 65536, ""}); });
    reader.join();
    _exit(file.error == 0 && prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
