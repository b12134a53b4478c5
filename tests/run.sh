#!/usr/bin/env bash
# Runs all checks, or the parts named as arguments, in the Python environment of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/testbed/host-packages.sh
venv=$(tests/testbed/venv.sh)
exec "$venv/bin/python" tests/run.py "$@"
