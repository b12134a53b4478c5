#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: Facts about the NVIDIA GPUs of a node and everything between them and Kubernetes
version_added: 0.1.0
description:
  - Returns what a node knows about its NVIDIA GPUs as the fact C(nvidia_gpu) - PCI devices, kernel driver with one
    verdict on its state, NVML's view of each GPU, container runtimes, NVIDIA Container Toolkit, and the identity of the
    host as a Kubernetes node.
  - Works without a GPU, without a driver, with a broken driver and without the Python binding of NVML. What cannot be
    read is V(null) and explained in C(reason); it is never a failure.
extends_documentation_fragment:
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._attributes.node
  - kubegpu.nvidia._attributes.facts
options:
  gather:
    description:
      - Parts to read and return. C(present) and C(reason) are always returned. V(nvml) stands for the keys C(nvml),
        C(gpus) and C(missing).
      - A call replaces the whole fact C(nvidia_gpu). Parts that an earlier call gathered and this one does not are
        gone.
    type: list
    elements: str
    choices: [all, host, pci, driver, nvml, runtimes, toolkit]
    default: [all]
requirements:
  - nvidia-ml-py (its module C(pynvml)) for C(gpus), which the role P(kubegpu.nvidia._nvml#role) puts on the node
notes:
  - Run it as root. An unprivileged user is not told the UUID of the system and who uses a GPU.
seealso:
  - name: nvidia-ml-py
    description: NVIDIA's Python binding of NVML. The project C(pynvml) on PyPI is another one and is not used.
    link: https://pypi.org/project/nvidia-ml-py/
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Read all facts about GPUs
  kubegpu.nvidia.gpu_facts:
  become: true

- name: Say which GPUs have failed
  ansible.builtin.debug:
    msg: "GPU {{ item.uuid or item.pci_address }}: {{ item.error.message }}"
  loop: "{{ ansible_facts.nvidia_gpu.gpus | selectattr('error') }}"
  loop_control:
    label: "{{ item.pci_address }}"

- name: Ask only whether the driver needs attention
  kubegpu.nvidia.gpu_facts:
    gather: [driver]
  become: true

- name: Stop with the reason when it does
  ansible.builtin.assert:
    that: ansible_facts.nvidia_gpu.driver.verdict == 'ok'
    fail_msg: "{{ ansible_facts.nvidia_gpu.driver.reason }}"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to the facts of the host.
  returned: success
  type: dict
  contains:
    nvidia_gpu:
      description: NVIDIA GPUs of this host.
      returned: success
      type: dict
      contains:
        present:
          description:
            - Whether a PCI function of NVIDIA is a VGA or 3D controller, whatever drives it, so also one that is given
              to a virtual machine. C(usable) of C(pci) says which ones are this host's own.
          returned: success
          type: bool
          sample: true
        reason:
          description: Why there are no or not all facts about GPUs, in sentences; empty when nothing is missing.
          returned: success
          type: str
          sample: ""
        host:
          description: The host and its identity.
          returned: O(gather) has V(host) or V(all)
          type: dict
          contains:
            machine_id:
              description: Content of C(/etc/machine-id), V(null) when there is none.
              type: str
              sample: 0c3f2f6fd3e34dc6a1b3b6f0e7a0a0aa
            system_uuid:
              description: UUID of the system from its firmware, in lower case; V(null) when it cannot be read.
              type: str
              sample: 4c4c4544-0051-3610-8052-b4c04f4e3733
            hostname:
              description: Name of the host as the kernel has it.
              type: str
              sample: gpu-a
            addresses:
              description: IP addresses of the host, without loopback and link-local ones.
              type: list
              elements: str
              sample: [10.0.0.11, "fd00::b"]
            kernel:
              description: Release of the running kernel.
              type: str
              sample: 6.12.57+deb13-amd64
            os:
              description: The distribution, from C(/etc/os-release).
              type: dict
              contains:
                id:
                  description: Name for programs.
                  type: str
                  sample: debian
                id_like:
                  description: Distributions that it is derived from.
                  type: list
                  elements: str
                  sample: []
                version_id:
                  description: Version, V(null) for rolling ones.
                  type: str
                  sample: "13"
                major:
                  description: First number of the version.
                  type: int
                  sample: 13
                codename:
                  description: Name of the release.
                  type: str
                  sample: trixie
                name:
                  description: Name for people.
                  type: str
                  sample: Debian GNU/Linux 13 (trixie)
            architecture:
              description: Machine type of the kernel.
              type: str
              sample: x86_64
            secure_boot:
              description: Whether Secure Boot is on, V(null) without EFI.
              type: bool
              sample: false
            python:
              description: The Python that runs modules on this host.
              type: dict
              contains:
                version:
                  description: Its version.
                  type: str
                  sample: 3.13.5
                modules:
                  description: Those of a fixed list of modules, which the roles' tasks need, that it can import.
                  type: list
                  elements: str
                  sample: [apt, apt_pkg, pynvml, tomllib]
            kubelet_running:
              description: Whether a kubelet (or k3s, RKE2, k0s, MicroK8s) runs.
              type: bool
              sample: true
            packages_interrupted:
              description:
                - Whether dpkg was stopped half-way, so that C(dpkg --configure -a) has something to do.
                - It is V(null) on hosts without dpkg, and V(true) as well while another dpkg is at work.
              type: bool
              sample: false
        pci:
          description: PCI functions of NVIDIA, by address.
          returned: O(gather) has V(pci) or V(all)
          type: list
          elements: dict
          contains:
            address:
              description: Domain, bus, device and function in lower case.
              type: str
              sample: "0000:1a:00.0"
            vendor_id:
              description: PCI vendor.
              type: str
              sample: 10de
            device_id:
              description: PCI device.
              type: str
              sample: "2330"
            subsystem_vendor_id:
              description: PCI subsystem vendor, V(null) when it cannot be read.
              type: str
              sample: 10de
            subsystem_device_id:
              description: PCI subsystem, V(null) when it cannot be read.
              type: str
              sample: 16c1
            class:
              description: PCI class and subclass.
              type: str
              sample: "0302"
            kind:
              description: What the function is - V(gpu), V(nvswitch), V(audio) or V(other).
              type: str
              sample: gpu
            name:
              description: Chip and, where known, board; V(null) when unknown or not a GPU, as all of the following.
              type: str
              sample: GH100 [H100 SXM5 80GB]
            generation:
              description: Generation of the GPU.
              type: str
              sample: hopper
            needs_open_modules:
              description: Whether the GPU runs with the open kernel modules only.
              type: bool
              sample: false
            supports_open_modules:
              description: Whether the GPU can run with the open kernel modules.
              type: bool
              sample: true
            mig_capable:
              description: Whether the board can be partitioned with MIG.
              type: bool
              sample: true
            driver:
              description: Kernel driver that is bound, such as V(nvidia), V(nouveau) or V(vfio-pci).
              type: str
              sample: nvidia
            virtual_function:
              description: Whether this is an SR-IOV virtual function of another one.
              type: bool
              sample: false
            usable:
              description:
                - Whether this host's own NVIDIA driver is to drive it - a GPU that is neither bound to V(vfio-pci) nor
                  a virtual function.
              type: bool
              sample: true
        driver:
          description: The kernel driver, in the kernel and on the disk.
          returned: O(gather) has V(driver) or V(all)
          type: dict
          contains:
            loaded:
              description: The module in the kernel, V(null) when there is none.
              type: dict
              contains:
                version:
                  description: Its version, V(null) when the kernel does not tell.
                  type: str
                  sample: 580.178.04
                flavour:
                  description: V(open) or V(proprietary), V(null) when the kernel does not tell.
                  type: str
                  sample: open
            library:
              description: Version of C(libnvidia-ml.so.1), V(null) when it is not installed.
              type: str
              sample: 580.178.04
            packages:
              description:
                - Versions by name of the driver's packages, and of C(dkms) and C(linux-headers-*), which its modules
                  are built with. Packages that were left half-installed are not among them.
              type: dict
              sample: {dkms: 3.2.2-1, libnvidia-ml1: 580.178.04-1, nvidia-kernel-open-dkms: 580.178.04-1}
            devices:
              description:
                - Which of V(nvidiactl) and V(nvidia-uvm) are character devices in C(/dev). CUDA needs both; a driver
                  that was loaded half-way has no V(nvidia-uvm).
              type: list
              elements: str
              sample: [nvidiactl, nvidia-uvm]
            nouveau_loaded:
              description: Whether the kernel has the module nouveau.
              type: bool
              sample: false
            verdict:
              description:
                - One word on all of this.
                - V(ok) - the kernel runs the version that is installed.
                - V(absent) - nothing is installed and nothing is loaded.
                - V(not_loaded) - installed, but no module is in the kernel.
                - V(reload) - the kernel runs another version than the installed one, and nothing holds it.
                - V(reboot) - the same, but something holds it or that is unknown; or nouveau has the GPUs.
                - V(mismatch) - the installation contradicts itself.
                - V(unknown) - it could not be read.
              type: str
              sample: ok
            reason:
              description: The verdict in a sentence.
              type: str
              sample: Driver 580.178.04 is installed and loaded.
        nvml:
          description: NVIDIA's management library.
          returned: O(gather) has V(nvml) or V(all)
          type: dict
          contains:
            status:
              description: V(ok), V(error), V(binding_missing), or V(not_needed) without a GPU for the driver.
              type: str
              sample: ok
            error:
              description: Name of NVML's error when it could not be used.
              type: str
              sample: LIB_RM_VERSION_MISMATCH
            code:
              description: Number of that error.
              type: int
              sample: 18
            message:
              description: What it means and what to do; empty when nothing is wrong.
              type: str
              sample: ""
            driver_version:
              description: Version of the driver.
              type: str
              sample: 580.178.04
            library_version:
              description: Version of NVML.
              type: str
              sample: 13.580.178.04
            cuda_version:
              description: Newest version of CUDA that the driver supports.
              type: str
              sample: "13.0"
        gpus:
          description: GPUs by NVML's index. One that has failed keeps its entry; what it does not say is V(null).
          returned: O(gather) has V(nvml) or V(all)
          type: list
          elements: dict
          contains:
            uuid:
              description: UUID.
              type: str
              sample: GPU-4f5c8d2e-1b3a-5c7d-9e8f-0a1b2c3d4e5f
            pci_address:
              description: PCI address, spelled as in C(pci).
              type: str
              sample: "0000:1a:00.0"
            index:
              description: NVML's number. It changes when a board is added or fails.
              type: int
              sample: 0
            minor:
              description: Number of the device file C(/dev/nvidia<minor>).
              type: int
              sample: 0
            name:
              description:
                - Model. Of a GPU that does not answer, the name in C(pci), or V(unknown GPU).
              type: str
              sample: NVIDIA H100 80GB HBM3
            generation:
              description: Generation of the GPU.
              type: str
              sample: hopper
            memory_mib:
              description: Memory, V(null) for boards that share the host's.
              type: int
              sample: 81559
            serial:
              description: Serial number of the board.
              type: str
              sample: "1650923000123"
            mig:
              description: MIG mode, V(enabled) or V(disabled); V(null) for boards without MIG.
              type: dict
              contains:
                current:
                  description: Mode now.
                  type: str
                  sample: disabled
                pending:
                  description: Mode after a reset.
                  type: str
                  sample: disabled
                instances:
                  description:
                    - GPU instances in the order of their places; V(null) when MIG is off, or NVML does not say, which
                      takes root.
                  type: list
                  elements: dict
                  contains:
                    id:
                      description: Number of the GPU instance. It says nothing about its place.
                      type: int
                      sample: 9
                    profile:
                      description: Its profile, as this GPU's driver names it.
                      type: str
                      sample: 1g.10gb
                    start:
                      description: The memory slice at which it begins.
                      type: int
                      sample: 0
                    compute_instances:
                      description: Its compute instances. Without any it can be used by nobody.
                      type: list
                      elements: dict
                      contains:
                        id:
                          description: Number of the compute instance in its GPU instance.
                          type: int
                          sample: 0
                        profile:
                          description: Its profile; that of the GPU instance when it is all of it.
                          type: str
                          sample: 1g.10gb
                        uuid:
                          description:
                            - UUID of the MIG device. One that is made anew in the same place gets the same.
                          type: str
                          sample: MIG-1f6d1c50-34c8-5a2b-9d67-6d0c7ae9a1b2
            compute_mode:
              description: V(default), V(exclusive_process) or V(prohibited).
              type: str
              sample: default
            persistence:
              description: Persistence mode.
              type: bool
              sample: true
            ecc:
              description: ECC mode, V(null) for boards without ECC.
              type: dict
              contains:
                current:
                  description: Mode now.
                  type: bool
                  sample: true
                pending:
                  description: Mode after a reboot.
                  type: bool
                  sample: true
            processes:
              description: Processes that use the GPU; V(null) when NVML cannot tell, which does not mean nobody.
              type: list
              elements: dict
              contains:
                pid:
                  description: Number of the process on the host.
                  type: int
                  sample: 4711
                command:
                  description: Name of its program, empty when it has ended.
                  type: str
                  sample: python3
                type:
                  description: V(compute), V(graphics) or V(mps).
                  type: str
                  sample: compute
                gpu_instance:
                  description: Number of the GPU instance that it uses, V(null) outside MIG.
                  type: int
                  sample: 9
                compute_instance:
                  description: Number of the compute instance that it uses, V(null) outside MIG.
                  type: int
                  sample: 0
            error:
              description: Why the GPU does not answer, V(null) when it does.
              type: dict
              contains:
                error:
                  description: Name of NVML's error.
                  type: str
                  sample: GPU_IS_LOST
                code:
                  description: Number of that error.
                  type: int
                  sample: 15
                message:
                  description: What it means and what to do.
                  type: str
                  sample: The GPU has fallen off the bus.
        missing:
          description:
            - PCI addresses of GPUs with C(usable) that NVML does not show at all. Empty as well when the C(status) of
              C(nvml) is not V(ok).
          returned: O(gather) has V(nvml) or V(all)
          type: list
          elements: str
          sample: []
        runtimes:
          description: Container runtimes, running or installed.
          returned: O(gather) has V(runtimes) or V(all)
          type: list
          elements: dict
          contains:
            name:
              description: The runtime.
              type: str
              sample: containerd
            running:
              description: Whether its daemon runs.
              type: bool
              sample: true
            version:
              description: Its version.
              type: str
              sample: 1.7.24
            socket:
              description: Where the kubelet reaches it.
              type: str
              sample: /run/containerd/containerd.sock
            pid:
              description: Process of the daemon, V(null) when it does not run.
              type: int
              sample: 612
            started:
              description: When the daemon started, in seconds since 1970; V(null) when it does not run.
              type: float
              sample: 1796025600.25
            config_path:
              description: Configuration file that the daemon was told to read.
              type: str
              sample: /etc/containerd/config.toml
        toolkit:
          description: NVIDIA Container Toolkit.
          returned: O(gather) has V(toolkit) or V(all)
          type: dict
          contains:
            version:
              description: Version of its package, V(null) when there is none.
              type: str
              sample: 1.20.2
            packages:
              description: Versions of its packages by name, without those that were left half-installed.
              type: dict
              sample: {nvidia-container-toolkit: 1.20.2-1}
            binaries:
              description: Paths of C(nvidia-ctk), C(nvidia-cdi-hook) and C(nvidia-container-runtime), if installed.
              type: dict
              sample: {nvidia-ctk: /usr/bin/nvidia-ctk}
            cdi_specifications:
              description: Paths of the files in C(/etc/cdi) and C(/var/run/cdi) that container runtimes read.
              type: list
              elements: str
              sample: [/var/run/cdi/nvidia.yaml]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nvidia.plugins.module_utils._facts import PARTS, gather


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "gather": {"type": "list", "elements": "str", "choices": ["all", *PARTS], "default": ["all"]},
        },
        supports_check_mode=True,
    )
    wanted = module.params["gather"]
    parts = PARTS if "all" in wanted else wanted
    module.exit_json(changed=False, ansible_facts={"nvidia_gpu": gather(module.run_command, parts)})


if __name__ == "__main__":
    main()
