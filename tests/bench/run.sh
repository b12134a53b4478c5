#!/usr/bin/env bash
# Runs the benches in the Python environment of the tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/testbed/host-packages.sh
venv=$(tests/testbed/venv.sh)
PATH=$venv/bin:$PATH
# shellcheck disable=SC2016  # in_collections.sh sets the variable
tests/in_collections.sh sh -c 'PYTHONPATH=$ANSIBLE_COLLECTIONS_PATH python tests/bench/mig/plan.py'
python tests/bench/mig/apply.py
