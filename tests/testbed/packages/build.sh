#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints a directory that stands for NVIDIA's download servers: the CUDA repository for Debian 13 and the container toolkit's repository,
# signed, under the paths of the real ones.
. "$(dirname "$0")/../lib.sh"
cd "$TESTBED_SRC/packages"

DRIVERS=(580.173.02 580.178.04 595.91.07)
PINS=(580 595 580.173.02 580.178.04)
TOOLKIT=1.20.2
CUDA_REPOSITORY=compute/cuda/repos/debian13/x86_64
CUDA_KEY=8793F200.pub # the name of the file that holds NVIDIA's real key

# The toolkit's programs, with what its own packages ship besides them.
build_toolkit() {
  use_go 1.26
  local module=github.com/NVIDIA/nvidia-container-toolkit source
  # The flags of its Makefile: NVML is looked for when a program runs, not when it is linked.
  local ldflags="-s -w '-extldflags=-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy' -X $module/internal/info.version=$TOOLKIT"
  local commands=(nvidia-ctk nvidia-cdi-hook nvidia-container-runtime{,.cdi,.legacy,-hook})
  commands=("${commands[@]/#/$module/cmd/}")
  CGO_ENABLED=1 CGO_CFLAGS=-Wno-deprecated-declarations GOBIN=$OUT go install -trimpath -ldflags "$ldflags" "${commands[@]/%/@v$TOOLKIT}"
  source=$(go mod download -json "$module@v$TOOLKIT" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  cp -r --no-preserve=mode "$source/deployments" "$source/packaging" "$OUT"
}

# A key that lives as long as the cache, so that a node which trusts it keeps trusting rebuilt packages.
build_key() {
  in_keyring generate_key
}

generate_key() {
  gpg --batch --quiet --passphrase '' --quick-gen-key 'KubeGPU testbed <testbed@example.invalid>' ed25519 sign never
  gpg --batch --armor --export >"$OUT/public.asc"
  gpg --batch --armor --export-secret-keys >"$OUT/secret.asc"
}

# in_keyring COMMAND...: runs COMMAND with an empty keyring of its own.
in_keyring() (
  GNUPGHOME=$(mktemp -d)
  export GNUPGHOME
  trap 'gpgconf --kill gpg-agent; rm -rf "$GNUPGHOME"' EXIT
  "$@"
)

build_repositories() {
  local version pin cuda=$OUT/$CUDA_REPOSITORY toolkit=$OUT/libnvidia-container/stable/deb/amd64
  mkdir -p "$cuda" "$toolkit"
  for version in "${DRIVERS[@]}"; do
    local common=(--input "${simgpu[$version]}" --input driver --set "version=$version-1" --set "upstream=$version")
    ./debs.py driver.toml "$cuda" "${common[@]}"
    ./debs.py kernel.toml "$cuda" "${common[@]}" --set name=nvidia-kernel-open-dkms --set other=nvidia-kernel-dkms --set flavour=open
    ./debs.py kernel.toml "$cuda" "${common[@]}" --set name=nvidia-kernel-dkms --set other=nvidia-kernel-open-dkms --set flavour=proprietary
  done
  for pin in "${PINS[@]}"; do
    ./debs.py pinning.toml "$cuda" --set "version=$pin-1" --set "pin=$pin"
  done
  ./debs.py headers.toml "$cuda" --set version=1 --set "kernel=$(uname -r)"
  ./debs.py toolkit.toml "$toolkit" --input "$toolkit_files" --set "version=$TOOLKIT-1"

  in_keyring index "$cuda" NVIDIA
  in_keyring index "$toolkit" https://nvidia.github.io/libnvidia-container/stable/deb
  cp "$key/public.asc" "$cuda/$CUDA_KEY"
  cp "$key/public.asc" "$OUT/libnvidia-container/gpgkey"
}

# index DIRECTORY ORIGIN: makes a signed flat repository of the packages in DIRECTORY.
index() {
  cd "$1"
  apt-ftparchive packages . >Packages
  gzip -9nk Packages
  apt-ftparchive -o "APT::FTPArchive::Release::Origin=$2" -o APT::FTPArchive::Release::Architectures=amd64 release . >Release.new
  mv Release.new Release
  gpg --batch --quiet --import "$key/secret.asc"
  gpg --batch --quiet --clearsign -o InRelease Release
}

declare -A simgpu
for version in "${DRIVERS[@]}"; do
  simgpu[$version]=$(../simgpu/build.sh "$version")
done
toolkit_files=$(cached toolkit "$TOOLKIT" build_toolkit)
key=$(cached package-key 1 build_key)
inputs=$(echo "${simgpu[*]}" "$toolkit_files" "$(uname -r)" | sha256sum | cut -c1-12)
cached packages "$(key_of .)-$inputs" build_repositories
