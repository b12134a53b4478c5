#!/usr/bin/env bash
# Runs a command with this checkout visible as ansible_collections/kubegpu/nvidia, for tools that import the collection by name.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/ansible_collections/kubegpu"
ln -s "$PWD" "$tree/ansible_collections/kubegpu/nvidia"
export ANSIBLE_COLLECTIONS_PATH=$tree ANSIBLE_HOME=$tree/home MYPYPATH=$tree
cd "$tree/ansible_collections/kubegpu/nvidia"
"$@"
