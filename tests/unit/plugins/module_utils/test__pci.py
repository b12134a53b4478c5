# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _pci


@pytest.fixture
def bus(tmp_path):
    """Adds a function to a bus in tmp_path."""

    def add(address, device, class_, *, vendor="10de", driver=None, physfn=False):
        directory = tmp_path / address
        directory.mkdir()
        for name, value in (("vendor", vendor), ("device", device), ("class", f"{class_}00")):
            (directory / name).write_text(f"0x{value}\n")
        (directory / "subsystem_vendor").write_text("0x10de\n")
        (directory / "subsystem_device").write_text("0x16c1\n")
        if driver:
            (directory / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        if physfn:
            (directory / "physfn").symlink_to("../0005:00:00.0")

    return add


def test_a_bus_with_everything_in_it(bus, tmp_path):
    bus("0000:00:00.0", "1237", "0600", vendor="8086")
    bus("0001:00:00.0", "20b2", "0302", driver="nvidia")
    bus("0002:00:00.0", "20b2", "0302", driver="vfio-pci")
    bus("0003:00:00.0", "1af1", "0680")
    bus("0004:00:00.0", "2231", "0300", driver="nouveau")
    bus("0004:00:00.1", "1aef", "0403", driver="snd_hda_intel")
    bus("0005:00:00.0", "26b9", "0302")
    bus("0005:00:00.4", "26b9", "0302", physfn=True)
    bus("000a:1b:00.0", "20b2", "0302", driver="nvidia")
    found = _pci.scan(str(tmp_path))
    assert [(each.address, each.kind, each.driver, each.virtual_function) for each in found] == [
        ("0001:00:00.0", "gpu", "nvidia", False),
        ("0002:00:00.0", "gpu", "vfio-pci", False),
        ("0003:00:00.0", "nvswitch", None, False),
        ("0004:00:00.0", "gpu", "nouveau", False),
        ("0004:00:00.1", "audio", "snd_hda_intel", False),
        ("0005:00:00.0", "gpu", None, False),
        ("0005:00:00.4", "gpu", None, True),
        ("000a:1b:00.0", "gpu", "nvidia", False),
    ]
    assert [each.address for each in found if each.usable] == [
        "0001:00:00.0",
        "0004:00:00.0",
        "0005:00:00.0",
        "000a:1b:00.0",
    ]


def test_the_fact_of_a_function(bus, tmp_path):
    bus("0000:1a:00.0", "2330", "0302", driver="nvidia")
    (found,) = _pci.scan(str(tmp_path))
    assert found.as_fact() == {
        "address": "0000:1a:00.0",
        "vendor_id": "10de",
        "device_id": "2330",
        "subsystem_vendor_id": "10de",
        "subsystem_device_id": "16c1",
        "class": "0302",
        "kind": "gpu",
        "name": "GH100 [H100 SXM5 80GB]",
        "generation": "hopper",
        "needs_open_modules": False,
        "supports_open_modules": True,
        "mig_capable": True,
        "driver": "nvidia",
        "virtual_function": False,
        "usable": True,
    }


def test_garbage_on_the_bus_is_passed_over(bus, tmp_path):
    bus("0000:1a:00.0", "2330", "0302")
    (tmp_path / "0000:1a:00.0" / "subsystem_device").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "0000:1a:00.0" / "device").write_text("")
    (tmp_path / "0000:1b:00.0").mkdir()
    (tmp_path / "README").write_text("not a device")
    (found,) = _pci.scan(str(tmp_path))
    assert (found.device_id, found.subsystem_device_id, found.board.generation) == ("", None, None)


def test_a_host_without_a_bus(tmp_path):
    with pytest.raises(FileNotFoundError):
        _pci.scan(str(tmp_path / "missing"))


@pytest.mark.parametrize("text", ["0000000A:1B:00.0", "000a:1b:00.0", "000A:1B:00.0", " 000a:1b:00.0\n"])
def test_one_spelling_of_addresses(text):
    assert _pci.normal_address(text) == "000a:1b:00.0"


def test_addresses_without_a_domain_and_other_texts():
    assert _pci.normal_address("1a:00.0") == "0000:1a:00.0"
    assert _pci.normal_address("00010000:1a:00.0") == "10000:1a:00.0"
    assert _pci.normal_address("GPU-1a") is None
