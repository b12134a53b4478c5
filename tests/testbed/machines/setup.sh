#!/bin/bash
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the root of a new node image: the user that Ansible comes as, what starts at boot, and nothing that must differ between machines.
useradd --create-home --shell /bin/bash admin
echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
chmod 0440 /etc/sudoers.d/admin

systemctl enable kubelet.service kubernetes-service.service
# A node has no disks, console or network devices of its own to look after.
systemctl mask --quiet systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service getty.target console-getty.service systemd-networkd.service

: >/etc/machine-id
rm -f /var/lib/dbus/machine-id /etc/hostname
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/bootstrap.log
