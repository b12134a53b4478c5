#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# The testbed's command line: testbed.sh up | down | env | recreate NODE | restart NODE | shell NODE
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/host-packages.sh"
python=$("$here/venv.sh")/bin/python
PYTHONPATH=$here/.. exec "$python" -P -m testbed "$@"
