#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# build.sh VERSION: the simulated driver of that version. Prints the finished directory.
# shellcheck source=tests/testbed/lib.sh
. "$(dirname "$0")/../lib.sh"

VERSION=${1:?usage: build.sh VERSION, such as 580.178.04}
GO_NVML=github.com/NVIDIA/go-nvml@v0.13.4-1 # its nvml.h is NVIDIA's own, of NVML 13
SRC=$TESTBED_SRC/simgpu

# Every function of the header that the library does not simulate exists nevertheless, and says so: NVML_ERROR_NOT_SUPPORTED is 3.
stubs() {
  grep DECLDIR "$1" | grep -oE '\bnvml[A-Za-z0-9_]+ ?\(' | tr -d ' (' | sort -u |
    sed 's/.*/__attribute__((weak)) int &(void) { return 3; }/'
}

build() {
  use_go 1.26
  local headers work=$OUT/work
  headers=$(cd / && go mod download -json "$GO_NVML" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/gen/nvml
  mkdir "$work"
  stubs "$headers/nvml.h" >"$work/stubs.c"
  echo '{ global: nvml*; local: *; };' >"$work/exports"

  # The old names of calls are functions of their own here, not macros for the new ones.
  local flags=(-std=gnu11 -O1 -Wall -Wextra -Werror -Wno-deprecated-declarations -I"$headers")
  flags+=("-DSIM_VERSION=\"$VERSION\"" -DNVML_NO_UNVERSIONED_FUNC_DEFS)
  cd "$SRC/src"
  gcc -w -fPIC -c "$work/stubs.c" -o "$work/stubs.o"
  gcc "${flags[@]}" -fPIC -shared -pthread -Wl,-soname,libnvidia-ml.so.1 -Wl,--version-script="$work/exports" -Wl,-z,defs \
    -o "$OUT/libnvidia-ml.so.$VERSION" nvml_*.c client.c board.c mig.c faults.c "$work/stubs.o"
  gcc "${flags[@]}" -fPIC -shared -Wl,-soname,libcuda.so.1 -o "$OUT/libcuda.so.$VERSION" libcuda.c
  # Static, so that an image with nothing else in it can carry it.
  gcc "${flags[@]}" -static -o "$OUT/simgpu" cli.c load.c server.c operations.c processes.c instances.c capabilities.c files.c \
    client.c board.c mig.c faults.c
  gcc "${flags[@]}" -o "$OUT/nvidia-smi" smi.c client.c board.c
  gcc "${flags[@]}" -o "$OUT/nvidia-persistenced" persistenced.c client.c
  cp -r "$SRC/boards" "$OUT/boards"
  echo "$VERSION" >"$OUT/version"
  rm -r "$work"
}

cached simgpu "$VERSION-$(key_of "$SRC/src" "$SRC/boards" "$SRC/build.sh")" build
