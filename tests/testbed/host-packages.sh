#!/bin/sh
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the Debian packages that the testbed needs on this machine and that are missing. Asks the network for nothing when none is.
set -eu

# Nodes, then the control plane, then what the builds of the simulated parts need, then what reaches the nodes. The unit tests ask the
# parser of containerd what it makes of configuration files.
packages='
  podman runc containernetworking-plugins iptables debootstrap
  etcd-server openssl
  containerd
  gcc libc6-dev make gnupg apt-utils dpkg-dev
  python3-venv openssh-client curl git ca-certificates
'

missing=
for package in $packages; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "The testbed runs as root and needs these packages:$missing" >&2
  exit 1
fi
echo "==> installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
# shellcheck disable=SC2086  # a list of words
apt-get install -y -qq --no-install-recommends $missing >&2

# Only the programs are wanted; the services that came with the packages just now have no other user.
for service in etcd:etcd-server containerd:containerd; do
  case "$missing" in *"${service#*:}"*)
    [ ! -d /run/systemd/system ] || systemctl disable --quiet --now "${service%:*}" >&2
  esac
done
