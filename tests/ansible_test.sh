#!/usr/bin/env bash
# Runs ansible-test, which insists on a real directory .../ansible_collections/kubegpu/nvidia, on a copy of this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=${KUBEGPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubegpu}/ansible-test
# ansible-test keeps its environments in the home directory, and wants a pip installer that it would fetch from the network; ensurepip is one.
export HOME=$cache/home LC_ALL=C.UTF-8
mkdir -p "$HOME/.ansible/test/cache"
for version in 24_2 25_2; do
  cp tests/get_pip.py "$HOME/.ansible/test/cache/get_pip_$version.py"
done
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
copy=$tree/ansible_collections/kubegpu/nvidia
mkdir -p "$copy"
# It looks for collections that we depend on beside ours only.
ln -s "$(python -c 'import ansible_collections.kubernetes as found; print(found.__path__[0])')" "$tree/ansible_collections/kubernetes"
git ls-files --cached --others --exclude-standard -z -- . ':(exclude,glob)tests/*.py' ':!tests/testbed' ':!tests/e2e' ':!molecule' ':!.ci' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar -c --null -T - | tar -x -C "$copy"
cd "$copy"
status=0
ansible-test "$@" || status=$?
mkdir -p "$root/tests/output"
[ ! -d tests/output/junit ] || cp -r tests/output/junit "$root/tests/output/"
exit "$status"
