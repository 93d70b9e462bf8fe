# Sourced by setup.sh: which Debian packages a job needs, and their installation.
#
#   need NAMES CHECK   NAMES: a package, or several with | between them, of which one exists in each release of Debian.
#                      CHECK: a command that succeeds when it is there.
#   install_needed     installs what is missing, or says how to, and ends

needed=''

need() {
  if ! (eval "$2") >/dev/null 2>&1; then needed="$needed $1"; fi
}

# there PATH…: whether one of these files exists. Patterns that match nothing stay as they are.
there() {
  for each in "$@"; do
    if [ -e "$each" ]; then return 0; fi
  done
  return 1
}

# needs_of JOB: what each job needs beyond a compiler.
needs_of() {
  case $1 in
  tools | build | fresh) ;;
  *) need curl 'command -v curl' ;;
  esac
  case $1 in
  test | long | check-native | bench)
    need libcmocka-dev 'there /usr/include/cmocka.h /usr/local/include/cmocka.h'
    ;;
  esac
  case $1 in
  test | long | bench)
    need softhsm2 'command -v softhsm2-util'
    # Before the build: dke-jce.jar is made with it.
    need 'openjdk-17-jdk-headless|openjdk-21-jdk-headless|default-jdk-headless' 'command -v javac'
    need derby-tools 'there /usr/share/java/derbytools.jar'
    need libderby-java 'there /usr/share/java/derby.jar'
    need p11-kit 'command -v p11-kit'
    need p11-kit-modules 'there /usr/lib/*/pkcs11/p11-kit-client.so'
    need opensc 'command -v pkcs11-tool'
    need openssl 'command -v openssl'
    need libfaketime 'there /usr/lib/*/faketime/libfaketimeMT.so.1'
    # A database over the library: its server, its backup program, and the headers that its key management plugin is
    # built with (libmariadb-dev, the client's, does not have them).
    need mariadb-server 'test -x /usr/sbin/mariadbd && command -v mariadb-install-db'
    need mariadb-backup 'command -v mariabackup'
    need 'postgresql-15|postgresql' 'there /usr/lib/postgresql/*/bin/initdb && command -v psql'
    need libmariadbd-dev 'there /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
  esac
  case $1 in
  test | long)
    need awscli 'command -v aws'
    need chromium 'command -v chromium'
    # The fuzzers of test/native/fuzz.
    need clang 'command -v clang'
    need libclang-rt-dev 'there /usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer*.a'
    # The clients of test/clients.
    need libengine-pkcs11-openssl 'there /usr/lib/*/engines-3/pkcs11.so'
    need gnutls-bin 'command -v p11tool && command -v gnutls-serv'
    need opensc-pkcs11 'there /usr/lib/*/pkcs11-spy.so /usr/lib/*/pkcs11/pkcs11-spy.so'
    # dke provider: units are verified, and a socket is handed to the agent.
    need systemd 'command -v systemd-analyze && command -v systemd-socket-activate'
    need libnss3-tools 'command -v modutil && command -v symkeyutil'
    # The model of the connection between library and agent.
    need spin 'command -v spin'
    # Strikes single system calls of a server.
    need strace 'command -v strace'
    # A receiver of the audit log.
    need rsyslog 'test -x /usr/sbin/rsyslogd'
    need rsyslog-openssl 'there /usr/lib/*/rsyslog/lmnsd_ossl.so'
    need nginx-light 'test -x /usr/sbin/nginx'
    need openssh-client 'command -v ssh-keygen'
    need openssh-server 'test -x /usr/sbin/sshd'
    need libhsqldb-java 'there /usr/share/java/hsqldb.jar'
    need pgbackrest 'command -v pgbackrest'
    need gocryptfs 'command -v gocryptfs'
    need fuse3 'command -v fusermount3'
    # The commands of the guides use it.
    need jq 'command -v jq'
    # Hosts and users of tests.
    need iproute2 'command -v ip'
    need procps 'command -v ps'
    need util-linux 'command -v unshare && command -v setpriv'
    need git 'command -v git'
    ;;
  esac
  case $1 in
  bench | soak) need wrk 'command -v wrk' ;;
  check-native)
    need cppcheck 'command -v cppcheck'
    need clang-tidy 'command -v clang-tidy'
    ;;
  fresh) need debootstrap 'command -v debootstrap' ;;
  gameday)
    need openssl 'command -v openssl'
    need libfaketime 'there /usr/lib/*/faketime/libfaketimeMT.so.1'
    need mariadb-server 'test -x /usr/sbin/mariadbd && command -v mariadb-install-db'
    need mariadb-backup 'command -v mariabackup'
    need libmariadbd-dev 'there /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
  esac
  case $1 in
  package | package-aarch64 | long)
    need dpkg 'command -v dpkg-deb'
    need rpm 'command -v rpmbuild'
    # The repository of a signed release.
    need createrepo-c 'command -v createrepo_c'
    need 'openjdk-17-jdk-headless|openjdk-21-jdk-headless|default-jdk-headless' 'command -v javac'
    need libmariadbd-dev 'there /usr/include/mariadb/server/mysql/plugin_encryption.h'
    ;;
  esac
  case $1 in
  package-aarch64 | long)
    need g++-aarch64-linux-gnu 'command -v aarch64-linux-gnu-g++'
    need openssl 'command -v openssl'
    ;;
  esac
  if [ "$1" = long ]; then
    # Programs for aarch64 run in it.
    need qemu-user-static 'command -v qemu-aarch64-static'
    # The container image is unpacked and run by programs of others; fresh systems are made by debootstrap.
    need debootstrap 'command -v debootstrap'
    # Boots a host with systemd.
    need systemd-container 'command -v systemd-nspawn'
    need umoci 'command -v umoci'
    need crun 'command -v crun'
    # Installs from the repository of a signed release.
    need dnf 'command -v dnf'
  fi
}

# chosen NAMES: of alternatives, the first that the package lists know.
chosen() {
  for names in "$@"; do
    (
      IFS='|'
      for each in $names; do
        if [ "$each" = "$names" ] || apt-cache show "$each" >/dev/null 2>&1; then
          printf ' %s' "$each"
          exit
        fi
      done
      printf ' %s' "$each"
    )
  done
}

install_needed() {
  [ -n "$needed" ] || return 0
  needed=$(printf '%s\n' $needed | sort -u | tr '\n' ' ')
  if ! command -v apt-get >/dev/null 2>&1; then
    fail "Install these programs and libraries (the names are Debian's), then run the same command again: $needed"
  fi
  if [ "$(id -u)" != 0 ]; then
    fail 'System packages are missing. Install them, then run the same command again:' \
      "sudo apt-get update && sudo apt-get install -y --no-install-recommends$(chosen $needed)"
  fi
  log=$(mktemp)
  # Debian starts a server when it installs one. These are for tests, which start and stop them; a policy that is there stays.
  policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then
    policy=''
  else
    # A shell that a signal ends runs no trap of EXIT; left there, the policy would keep every server of the host from starting.
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  # The package lists may be missing or old: new ones are read only when the first try fails.
  install="apt-get install -y --no-install-recommends"
  say "installing the system packages$(chosen $needed) (20 seconds to 3 minutes)"
  if ! $install $(chosen $needed) >"$log" 2>&1 && ! { apt-get update >"$log" 2>&1 && $install $(chosen $needed) >>"$log" 2>&1; }; then
    cat "$log" >&2
    fail "This failed: $install$(chosen $needed)" 'Repair what apt-get says above, then run the same command again.'
  fi
  if [ -n "$policy" ]; then
    rm -f "$policy"
    trap - EXIT HUP INT TERM
  fi
  rm -f "$log"
  needed=''
}
