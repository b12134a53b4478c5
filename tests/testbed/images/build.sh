#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints a directory with the images that a cluster of the testbed would pull, as NAME.tar for "ctr images import". They are our own
# programs under the names of the real images.
. "$(dirname "$0")/../lib.sh"
cd "$TESTBED_SRC/images"

build_images() {
  use_go 1.26
  local work=$OUT/work gpu_env=(--env NVIDIA_VISIBLE_DEVICES=all --env "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
  mkdir "$work" "$work/pause" "$work/plugin" "$work/vectoradd"

  gcc -O2 -Wall -Wextra -static -o "$work/pause/pause" pause.c
  ./archive.py "$work/pause" "$OUT/pause.tar" registry.k8s.io/pause:3.10 -- /pause

  CGO_ENABLED=1 CGO_CFLAGS=-Wno-deprecated-declarations go -C device-plugin build -trimpath -ldflags '-s -w' -o "$work/nvidia-device-plugin"
  add_program "$work/nvidia-device-plugin" "$work/plugin" usr/bin
  ./archive.py "$work/plugin" "$OUT/k8s-device-plugin.tar" nvcr.io/nvidia/k8s-device-plugin:v0.20.0 \
    "${gpu_env[@]}" --env NVIDIA_DISABLE_REQUIRE=true -- /usr/bin/nvidia-device-plugin

  local nvml
  nvml=$(go -C device-plugin list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml # for its nvml.h
  gcc -O2 -Wall -Wextra -I "$nvml" -o "$work/vectorAdd" vectoradd.c ../simgpu/src/client.c
  add_program "$work/vectorAdd" "$work/vectoradd" cuda-samples
  ./archive.py "$work/vectoradd" "$OUT/cuda-sample.tar" nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0 "${gpu_env[@]}" -- /cuda-samples/vectorAdd
  rm -rf "$work"
}

# add_program FILE ROOT DIRECTORY: puts FILE and the libraries that it is linked with into ROOT, laid out so that driver libraries, which
# the container runtime mounts, are found as well.
add_program() {
  local file=$1 root=$2 library
  mkdir -p "$root/$3" "$root/etc" "$root/usr/lib/x86_64-linux-gnu" "$root/usr/lib64"
  ln -s usr/lib "$root/lib"
  ln -s usr/lib64 "$root/lib64"
  cp "$file" "$root/$3/"
  for library in $(ldd "$file" | grep -o '/[^ ]*'); do
    cp -L "$library" "$root$library"
  done
}

cached images "$(key_of . ../simgpu/src/client.c ../simgpu/src/state.h)" build_images
