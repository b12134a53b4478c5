# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.kubelet import minimum_of, too_old


@pytest.mark.parametrize(
    "found, minimum, fits",
    [
        ("v1.31.0", "1.31", True),
        ("v1.34.4", "1.31", True),
        ("v1.31.4+k3s1", "1.31", True),
        ("v1.31.4-gke.1200", "1.31.4", True),
        ("v2.0.0", "1.31", True),
        ("v1.30.9", "1.31", False),
        ("v1.9.11", "1.31", False),
        ("v1.31.3", "1.31.4", False),
        ("", "1.31", False),
        ("devel", "1.31", False),
    ],
)
def test_versions(found, minimum, fits):
    node = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": found}}}
    assert (too_old(node, minimum_of(minimum)) is None) is fits


def test_the_reason():
    node = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": "v1.30.9"}}}
    why = too_old(node, minimum_of("1.31"))
    for text in ("n1 is v1.30.9", "1.31 or newer", "CDI"):
        assert text in why


@pytest.mark.parametrize("given", [1.3, 1, "new", "1", "1.31+k3s1", "1.31.", ""])
def test_what_is_no_version(given):
    with pytest.raises(KubegpuError, match="quotes"):
        minimum_of(given)
