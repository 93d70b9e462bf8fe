# Sourced by the setup scripts: collects missing Debian packages and installs them, or says how to.
#
#   need <package> <command that succeeds when it is there>
#   install_needed

needed=''

need() {
  if ! sh -c "$2" >/dev/null 2>&1; then needed="$needed $1"; fi
}

install_needed() {
  [ -n "$needed" ] || return 0
  line="apt-get install -y --no-install-recommends$needed"
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "dke: packages are missing. Install them, then run the same command again:" >&2
    echo "  sudo apt-get update && sudo $line" >&2
    exit 1
  fi
  echo "dke: installing$needed"
  log=$(mktemp)
  # Debian starts a server when it installs one. These are for tests, which start and stop them; a policy that is there stays.
  policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then
    policy=''
  else
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  # The package lists may be missing or old: ask for new ones only when the first try fails.
  if ! $line >"$log" 2>&1 && ! { apt-get update >"$log" 2>&1 && $line >"$log" 2>&1; }; then
    cat "$log" >&2
    echo "dke: this failed: $line" >&2
    exit 1
  fi
  if [ -n "$policy" ]; then
    rm -f "$policy"
    trap - EXIT
  fi
  rm -f "$log"
  needed=''
}
