#!/bin/sh
# prepare.sh <demo|test|long|check-native|package|package-aarch64|bench|soak|stress|faults|gameday>: installs what that job needs beyond the build, then builds what is not built yet.
set -eu
cd "$(dirname "$0")/../.."
. test/support/packages.sh

job=${1:?usage: prepare.sh demo, test, long, package, bench, soak, stress, faults or gameday}
need curl 'command -v curl'
case $job in
  test | long | bench)
    need softhsm2 'command -v softhsm2-util'
    # Before the build: dke-jce.jar is made with it.
    need openjdk-17-jdk-headless 'command -v javac'
    need derby-tools 'test -e /usr/share/java/derby.jar && test -e /usr/share/java/derbytools.jar'
    need p11-kit 'command -v p11-kit'
    need p11-kit-modules 'test -n "$(find /usr/lib -name p11-kit-client.so | head -n 1)"'
    need opensc 'command -v pkcs11-tool'
    need openssl 'command -v openssl'
    need libfaketime 'test -n "$(find /usr/lib -name libfaketimeMT.so.1 | head -n 1)"'
    # A database over the library: its server, its backup program, and the headers that its key management plugin is built with
    # (libmariadb-dev, the client's, does not have them).
    need mariadb-server 'test -x /usr/sbin/mariadbd && command -v mariadb-install-db'
    need mariadb-backup 'command -v mariabackup'
    need postgresql-15 'test -x /usr/lib/postgresql/15/bin/initdb && command -v psql'
    need libmariadbd-dev 'test -f /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
esac
case $job in
  test | long)
    need awscli 'command -v aws'
    need chromium 'command -v chromium'
    # The fuzzers of test/native/fuzz.
    need clang 'command -v clang'
    need libclang-rt-dev 'test -n "$(find /usr/lib -name "libclang_rt.fuzzer*.a" | head -n 1)"'
    # The clients of test/clients.
    need openssl 'command -v openssl'
    need libengine-pkcs11-openssl 'test -n "$(find /usr/lib -path "*/engines-3/pkcs11.so" | head -n 1)"'
    need gnutls-bin 'command -v p11tool && command -v gnutls-serv'
    need opensc-pkcs11 'test -n "$(find /usr/lib -name pkcs11-spy.so | head -n 1)"'
    # dke provider: units are verified, and a socket is handed to the agent.
    need systemd 'command -v systemd-analyze && command -v systemd-socket-activate'
    need libnss3-tools 'command -v modutil && command -v symkeyutil'
    # The model of the connection between library and agent.
    need spin 'command -v spin'
    # Strikes single system calls of a server.
    need strace 'command -v strace'
    # A receiver of the audit log.
    need rsyslog 'test -x /usr/sbin/rsyslogd'
    need rsyslog-openssl 'test -n "$(find /usr/lib -name lmnsd_ossl.so | head -n 1)"'
    need nginx-light 'test -x /usr/sbin/nginx'
    need openssh-client 'command -v ssh-keygen'
    need openssh-server 'test -x /usr/sbin/sshd'
    need libhsqldb-java 'test -e /usr/share/java/hsqldb.jar'
    need pgbackrest 'command -v pgbackrest'
    need gocryptfs 'command -v gocryptfs'
    need fuse3 'command -v fusermount3'
    ;;
  bench | soak) need wrk 'command -v wrk' ;;
  check-native)
    need cppcheck 'command -v cppcheck'
    need clang-tidy 'command -v clang-tidy'
    ;;
  stress | faults | package | package-aarch64) ;;
  gameday)
    need openssl 'command -v openssl'
    need libfaketime 'test -n "$(find /usr/lib -name libfaketimeMT.so.1 | head -n 1)"'
    need mariadb-server 'test -x /usr/sbin/mariadbd && command -v mariadb-install-db'
    need mariadb-backup 'command -v mariabackup'
    need libmariadbd-dev 'test -f /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
esac
case $job in
  package | package-aarch64 | long)
    need dpkg 'command -v dpkg-deb'
    need rpm 'command -v rpmbuild'
    need openjdk-17-jdk-headless 'command -v javac'
    need libmariadbd-dev 'test -f /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
esac
case $job in
  package-aarch64 | long)
    need g++-aarch64-linux-gnu 'command -v aarch64-linux-gnu-g++'
    need openssl 'command -v openssl'
    ;;
esac
if [ "$job" = long ]; then
  # Programs for aarch64 run in it.
  need qemu-user-static 'command -v qemu-aarch64-static'
  # The container image is unpacked and run by programs of others.
  need debootstrap 'command -v debootstrap'
  need umoci 'command -v umoci'
  need crun 'command -v crun'
fi
install_needed

npm run --silent build:native
npm run --silent build:code
# The API and the command work without the pages.
if [ -e server/web/vite.config.ts ]; then npm run --silent build:web; fi
