#!/usr/bin/env bash
# The collection as a user gets it: built, installed into an empty path, and its site playbook understood from there.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ANSIBLE_HOME=$work/home ANSIBLE_COLLECTIONS_PATH=$work/collections
ansible-galaxy collection build --output-path "$work" .
ansible-galaxy collection install --no-deps --offline -p "$work/collections" "$work"/kubegpu-nvidia-*.tar.gz
installed=$work/collections/ansible_collections/kubegpu/nvidia
for unwanted in tests molecule Makefile .ci .git; do
  [ ! -e "$installed/$unwanted" ] || { echo "The built collection carries $unwanted; see build_ignore in galaxy.yml." >&2; exit 1; }
done
cd "$work"
ansible-playbook -i localhost, --syntax-check kubegpu.nvidia.site
