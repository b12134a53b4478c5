# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.identity import Host, match_hosts

UUID = "4c4c4544-0044-4410-8051-b4c04f4d3132"
OTHER_UUID = "4c4c4544-0044-4410-8051-c7c04f4d3132"
A, B, C = "a" * 32, "b" * 32, "c" * 32


def node(name, machine_id="", system_uuid="", *addresses):
    return {
        "metadata": {"name": name},
        "status": {
            "nodeInfo": {"machineID": machine_id, "systemUUID": system_uuid},
            "addresses": [
                {"type": "Hostname", "address": name},
                *({"type": "InternalIP", "address": address} for address in addresses),
            ],
        },
    }


def host(name="host", **known):
    return Host(name=name, **known)


THREE = [
    node("n1", A, UUID, "192.0.2.1"),
    node("n2", B, UUID, "192.0.2.2"),
    node("n3", C, UUID, "192.0.2.3", "2001:db8::3"),
]
CLONES = [node("n1", A, "", "192.0.2.1"), node("n2", A, "", "192.0.2.2"), node("n3", B, "", "192.0.2.3")]

FOUND = [
    pytest.param(host(machine_id=B), THREE, "n2", id="machine id"),
    pytest.param(
        host("n1", machine_id=B, addresses=["192.0.2.3"]), THREE, "n2", id="machine id before address and name"
    ),
    pytest.param(host(machine_id=B, system_uuid=UUID), THREE, "n2", id="one firmware UUID on all nodes"),
    pytest.param(host(system_uuid=UUID.upper()), [node("n1", "", UUID)], "n1", id="UUID in upper case"),
    pytest.param(host(system_uuid=UUID), [node("n1", "", UUID.upper())], "n1", id="UUID of the node in upper case"),
    pytest.param(
        host(machine_id=A, system_uuid=UUID), [node("n1", A, A)], "n1", id="kubelet without the firmware's UUID"
    ),
    pytest.param(host(addresses=["127.0.0.1", "192.0.2.2"]), THREE, "n2", id="address"),
    pytest.param(host(addresses=["2001:0db8:0:0::3"]), THREE, "n3", id="another spelling of an address"),
    pytest.param(host("n3"), THREE, "n3", id="name, when nothing else is known"),
    pytest.param(host("n1", machine_id=A), [node("n1")], "n1", id="name, when the node knows nothing of itself"),
    pytest.param(host(machine_id=A, addresses=["192.0.2.2"]), CLONES, "n2", id="cloned disks, told apart by address"),
    pytest.param(host("n2", machine_id=A), CLONES, "n2", id="cloned disks, told apart by name"),
    pytest.param(
        host(machine_id=A, system_uuid=UUID),
        [node("n1", A, UUID), node("n2", A, OTHER_UUID)],
        "n1",
        id="cloned, by UUID",
    ),
    pytest.param(host(machine_id=A, node_name="n3"), THREE, "n3", id="the inventory says so"),
]


@pytest.mark.parametrize("which, nodes, name", FOUND)
def test_found(which, nodes, name):
    matching = match_hosts([which], nodes)
    assert {key: value["metadata"]["name"] for key, value in matching.nodes.items()} == {which.name: name}
    assert not matching.missing
    assert not matching.errors


MISSING = [
    pytest.param(host(machine_id="d" * 32), THREE, "n1, n2, n3", id="nothing agrees"),
    pytest.param(host(machine_id="d" * 32), [], "no nodes", id="empty cluster"),
    pytest.param(host(machine_id="d" * 32, system_uuid=UUID), THREE, "joined", id="only the firmware's UUID agrees"),
    pytest.param(host("n1", machine_id="d" * 32), THREE, "another machine", id="same name in another cluster"),
    pytest.param(
        host(machine_id="d" * 32, addresses=["192.0.2.2"]),
        THREE,
        "internal address",
        id="same address in another cluster",
    ),
    pytest.param(
        host(machine_id=A, system_uuid=OTHER_UUID),
        [node("n1", A, UUID)],
        "n1",
        id="clone of a node, not in the cluster",
    ),
    pytest.param(host("N1"), THREE, "n1", id="a name in other letters is another name"),
    pytest.param(host("n1", node_name="n9"), THREE, "kubegpu_node_name", id="the inventory names no node"),
]


@pytest.mark.parametrize("which, nodes, text", MISSING)
def test_missing(which, nodes, text):
    matching = match_hosts([which], nodes)
    assert not matching.nodes
    assert not matching.errors
    assert text in matching.missing[which.name]


@pytest.mark.parametrize(
    "which, nodes, text",
    [
        (host(machine_id=A), CLONES, "n1, n2, which share its machine id"),
        (host(system_uuid=UUID), THREE, "n1, n2, n3, which share its system UUID"),
    ],
)
def test_several(which, nodes, text):
    matching = match_hosts([which], nodes)
    assert not matching.nodes
    assert not matching.missing
    assert text in matching.errors["host"]


def test_two_hosts_for_one_node():
    hosts = [host("old-name", machine_id=A), host("n2", machine_id=B), host("new-name", node_name="n1")]
    matching = match_hosts(hosts, THREE)
    assert list(matching.nodes) == ["n2"]
    assert list(matching.errors) == ["old-name", "new-name"]
    assert all("old-name and new-name match the same node n1" in text for text in matching.errors.values())
