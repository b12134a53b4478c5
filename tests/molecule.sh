#!/usr/bin/env bash
# Runs a Molecule scenario on machines of the testbed; expects the environment of `make testbed-env`.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MOLECULE_EPHEMERAL_DIRECTORY=$scratch LC_ALL=C.UTF-8 ANSIBLE_CONFIG=$PWD/ansible.cfg
molecule test --scenario-name "$1"
