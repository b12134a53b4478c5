# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong input on bare hosts: a clear message, and a host that is as it was."""

from __future__ import annotations

import pytest
from machines import recreate
from running import on, site

NODE = "gpu-b"


@pytest.fixture(scope="module", autouse=True)
def bare_node() -> None:
    recreate(NODE)


def state() -> tuple[str, str]:
    """Installed packages, and the process of the container runtime."""
    return on(NODE, "dpkg-query", "-W"), on(NODE, "systemctl", "show", "--property=MainPID", "containerd.service")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        pytest.param(
            {"nvidia_driver_branch": "999"}, ["nvidia_driver_branch is 999", "580, 590, 595"], id="unknown branch"
        ),
        pytest.param({"nvidia_driver_version": 580.1}, ["in quotes"], id="version as a number"),
        pytest.param({"nvidia_driver_version": "595.91.07"}, ["branch 580"], id="version of another branch"),
        pytest.param({"container_toolkit_version": 1.2}, ["quotes"], id="toolkit version as a number"),
        pytest.param(
            {"kubegpu_k8s_auth": {"host": "https://127.0.0.1:9", "api_key": "none"}},
            ["127.0.0.1:9", "API"],
            id="API unreachable",
        ),
        pytest.param({"kubegpu_node_name": "no-such-node"}, ["no-such-node", NODE], id="unknown node"),
        pytest.param({"kubegpu_api_host": "cpu-a"}, ["cpu-a", "kubernetes"], id="no Python packages on the API host"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_changed(variables: dict[str, object], says: list[str]) -> None:
    before = state()
    run = site("--limit", f"{NODE},cpu-a", **variables)
    assert run.code != 0
    for words in says:
        assert words in run.messages
    assert not run.changed
    assert state() == before


def test_a_source_that_contradicts_ours_is_named_and_apt_left_as_it_was() -> None:
    # As NVIDIA's cuda-keyring package leaves it: the same repository, with the same key in another file.
    repository = "http://10.89.0.1:8088/compute/cuda/repos/debian13/x86_64/"
    source, key = "/etc/apt/sources.list.d/cuda-debian13-x86_64.list", "/usr/share/keyrings/cuda-archive-keyring.asc"
    fetch = f"import urllib.request; urllib.request.urlretrieve('{repository}8793F200.pub', '{key}')"
    on(NODE, "python3", "-c", fetch)
    on(NODE, "sh", "-c", f"echo 'deb [signed-by={key}] {repository} /' >{source}")
    on(NODE, "apt-get", "update")
    try:
        run = site("--limit", NODE)
        assert run.code != 0
        assert "Signed-By" in run.messages
        assert "kubegpu" not in on(NODE, "ls", "/etc/apt/sources.list.d")
        on(NODE, "apt-get", "update")
    finally:
        on(NODE, "rm", source)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        pytest.param({"nvidia_driver_branch": "590"}, ["590", "580.178.04"], id="branch that is not offered"),
        pytest.param(
            {"nvidia_driver_version": "580.1.1"},
            ["580.1.1", "580.178.04", "580.173.02"],
            id="version that is not offered",
        ),
        pytest.param({"container_toolkit_version": "1.99.0"}, ["1.99.0", "1.20.2"], id="toolkit that is not offered"),
    ],
)
def test_what_the_repository_lacks_is_named_with_what_it_offers(variables: dict[str, object], says: list[str]) -> None:
    before = state()
    run = site("--limit", NODE, **variables)
    assert run.code != 0
    for words in says:
        assert words.lower() in run.messages.lower()
    installed, runtime = state()
    if "container_toolkit_version" not in variables:
        assert "nvidia" not in installed
    assert "nvidia-container-toolkit" not in installed
    assert runtime == before[1]


def test_check_mode_of_a_bare_host_runs_to_the_end_and_changes_nothing() -> None:
    recreate(NODE)
    before = state()
    run = site("--check", "--diff", "--limit", NODE)
    assert run.code == 0, run.messages
    assert {
        "Say what would be installed for the driver",
        "Say what would be installed for the container toolkit",
    } <= run.changed_tasks
    assert "would change" in run.report[NODE]
    assert state() == before
    assert (
        on(
            NODE,
            "find",
            "/etc/apt",
            "/etc/containerd",
            "/usr/local/lib",
            "-name",
            "*kubegpu*",
            "-o",
            "-name",
            "*nvidia*",
        )
        == ""
    )
