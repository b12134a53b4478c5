#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the directory of the Python environment that tests and testbed run in; makes it when tests/requirements.txt has changed.
# Debian's own Python, because that is the oldest one that the collection supports on a controller.
. "$(dirname "$0")/lib.sh"

requirements=$TESTBED_SRC/../requirements.txt

make_venv() {
  /usr/bin/python3 -m venv "$OUT"
  "$OUT/bin/pip" install -q --disable-pip-version-check -r "$requirements"
  # A venv names its own directory in its programs: let them name the one it is about to be moved to.
  grep -rlZ "$OUT" "$OUT/bin" "$OUT/pyvenv.cfg" | xargs -0 sed -i "s|$OUT|${OUT%.part}|g"
}

cached venv "$(key_of "$requirements" "$0")" make_venv
