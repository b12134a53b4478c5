#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# image.sh NAME: prints the directory with root.tar, the file system of a freshly installed node, and codename, the Debian release that its
# packages are of. machines/images/NAME/image.conf sets SUITE (the release); machines/images/NAME/setup.sh, if there, then runs in the new root.
. "$(dirname "$0")/../lib.sh"

machines=$TESTBED_SRC/machines
image=$machines/images/$1
# shellcheck source=/dev/null
. "$image/image.conf"

# What an administrator's Debian server has before it becomes a GPU node: systemd, ssh, Python and a Kubernetes runtime; nothing that the
# collection has to bring.
packages=systemd,systemd-sysv,libpam-systemd,dbus,openssh-server,sudo,python3,ca-certificates,iproute2,procps,kmod,netbase
packages=$packages,containerd,runc,containernetworking-plugins,iptables,conntrack

install_debian() {
  local mirror
  # shellcheck disable=SC2016  # apt expands it; the mirror that this machine's own apt uses
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -n 1) || true
  debootstrap --variant=minbase --include="$packages" "$SUITE" "$OUT/root" "${mirror:-http://deb.debian.org/debian}" >"$OUT/log" || {
    cat "$OUT/log" "$OUT/root/debootstrap/debootstrap.log"
    return 1
  }
  tar -C "$OUT/root" -cf "$OUT/root.tar" .
  rm -rf "$OUT/root"
}

make_image() {
  local root=$OUT/root script
  mkdir "$root"
  tar -C "$root" -xf "$debian/root.tar"
  cp -r "$machines/rootfs/." "$root"
  for script in "$machines/setup.sh" "$image/setup.sh"; do
    [ ! -f "$script" ] || chroot "$root" /bin/sh -eu <"$script"
  done
  tar -C "$root" -cf "$OUT/root.tar" .
  rm -rf "$root"
  echo "$SUITE" >"$OUT/codename"
}

debian=$(cached "debian-$SUITE" "$(sha256sum <<<"$packages" | cut -c1-12)" install_debian)
cached "node-image-$1" "$(key_of "$0" "$image" "$machines/setup.sh" "$machines/rootfs")" make_image
