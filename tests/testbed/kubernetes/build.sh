#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the directory with kube-apiserver, kube-controller-manager, kube-scheduler and kubelet: the one that
# KUBEBUILDER_ASSETS names if it has them, else built from source (8 minutes on 2 cores when Go's cache is cold).
. "$(dirname "$0")/../lib.sh"

programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
source=$TESTBED_SRC/kubernetes

has_programs() {
  local program
  for program in "${programs[@]}"; do
    [ -x "$1/$program" ] || return 1
  done
}

build_programs() {
  use_go 1.24
  local version
  version=$(sed -n 's|^require k8s.io/kubernetes v||p' "$source/go.mod")
  local package=k8s.io/component-base/version
  cd "$source"
  CGO_ENABLED=0 go build -trimpath -o "$OUT/" \
    -ldflags "-s -w -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version")" \
    "${programs[@]/#/k8s.io/kubernetes/cmd/}"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ] && has_programs "$KUBEBUILDER_ASSETS"; then
  echo "$KUBEBUILDER_ASSETS"
else
  cached kubernetes "$(key_of "$source/go.mod" "$source/go.sum" "$source/build.sh")" build_programs
fi
