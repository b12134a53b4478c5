# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the files as they are found to the effective section: with a stand-in, and with the machine's containerd 1.x."""

from __future__ import annotations

import os
import subprocess
import typing as t
import warnings

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.containerd import (
    CRI,
    Parser,
    Plan,
    Wanted,
    make_plan,
)
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._runtime import fake_containerd

DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
KUBEADM = """\
# written by the image build
version = 2   # do not change
root = "/var/lib/containerd"

[grpc]
  address = "/run/containerd/containerd.sock"   # the kubelet's

[plugins]
  [plugins.'io.containerd.grpc.v1.cri']
    sandbox_image = "mirror.example/pause:3.10"
    restrict_oom_score_adj = true
    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
        SystemdCgroup = true
"""
MIRRORS = f"""\
version = 2
[plugins."{CRI}".registry.mirrors."mirror.example"]
endpoint = ["https://mirror.example"]
"""
IMPORT = 'imports = ["{dir}/conf.d/99-nvidia*.toml"]'


def real_run_command(argv: list[str], **_options: t.Any) -> tuple[int, str, str]:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def real_version() -> tuple[int, ...]:
    try:
        words = real_run_command(["/usr/bin/containerd", "--version"])[1].split()
        return tuple(int(part) for part in words[2].lstrip("v").split("~")[0].split("."))
    except (OSError, IndexError, ValueError):
        return ()


class Node:
    """A directory with a main file and drop-ins, and a containerd that reads them."""

    def __init__(self, directory: t.Any, run_command: t.Any, cdi: bool) -> None:
        self.directory = directory
        self.main = str(directory / "config.toml")
        self.drop_in = str(directory / "conf.d" / "99-nvidia.toml")
        self.wanted = Wanted("/usr/bin/nvidia-container-runtime", cdi)
        scratch = directory / "scratch"
        scratch.mkdir()
        self.parser = Parser(run_command, "/usr/bin/containerd", str(scratch))

    def write(self, name: str, content: str | bytes) -> str:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.replace("{dir}", str(self.directory)).encode()
        path.write_bytes(data)
        return str(path)

    def plan(self) -> Plan:
        return make_plan(self.main, self.wanted, self.parser)

    def apply(self) -> dict[str, tuple[str | None, str]]:
        changes = {path: pair for path, pair in self.plan().texts.items() if pair[0] != pair[1]}
        for path, (_before, after) in changes.items():
            self.write(os.path.relpath(path, self.directory), after.encode())
        return changes

    def cri(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", self.parser.dump(self.main)["plugins"][CRI])

    def refusal(self) -> str:
        with pytest.raises(KubegpuError) as caught:
            self.plan()
        return str(caught.value).replace(str(self.directory), "")


CONTAINERDS = ["stand-in"]
if real_version()[:1] == (1,):
    CONTAINERDS.append("real")
else:
    warnings.warn("/usr/bin/containerd is no containerd 1.x: only a stand-in is tested with", stacklevel=1)


@pytest.fixture(params=CONTAINERDS)
def node(request: pytest.FixtureRequest, tmp_path: t.Any) -> Node:
    if request.param == "stand-in":
        return Node(tmp_path, fake_containerd.run_command, cdi=True)
    return Node(tmp_path, real_run_command, cdi=real_version() >= (1, 7, 16))


# name: main file before, the same afterwards
MAIN_FILES = {
    "Debian's": (DEBIAN, DEBIAN.replace("version = 2\n", f"version = 2\n{IMPORT}\n")),
    "kubeadm style, comments": (KUBEADM, KUBEADM.replace("# do not change\n", f"# do not change\n{IMPORT}\n")),
    "only a version": ("version = 2\n", f"version = 2\n{IMPORT}\n"),
    "no line end": ("version = 2", f"version = 2\n{IMPORT}"),
    "absent": (None, f"version = 2\n{IMPORT}\n"),
    "CRLF": (
        DEBIAN.replace("\n", "\r\n"),
        DEBIAN.replace("version = 2\n", f"version = 2\n{IMPORT}\n").replace("\n", "\r\n"),
    ),
    "odd spacing": ("\n\n  'version'=2#x\n[ grpc ]\nuid=0\n", f"\n\n  'version'=2#x\n{IMPORT}\n[ grpc ]\nuid=0\n"),
    "an empty list": ("version = 2\nimports = [ ]\n", 'version = 2\nimports = ["{dir}/conf.d/99-nvidia*.toml" ]\n'),
    "the folder imported": ('imports = ["{dir}/conf.d/*.toml"]\nversion = 2\n',) * 2,
    "imports of a table": (
        'version = 2\n[grpc]\nimports = ["{dir}/conf.d/*.toml"]\n',
        f'version = 2\n{IMPORT}\n[grpc]\nimports = ["{{dir}}/conf.d/*.toml"]\n',
    ),
}


@pytest.mark.parametrize("name", MAIN_FILES)
def test_main_file_gets_one_insertion_and_the_second_run_none(node: Node, name: str) -> None:
    before, after = MAIN_FILES[name]
    if before is not None:
        node.write("config.toml", before)
    node.apply()
    with open(node.main, "rb") as file:
        assert file.read().decode() == after.replace("{dir}", str(node.directory))
    assert node.cri()["containerd"]["runtimes"].keys() == {"runc", "nvidia"}
    assert node.apply() == {}


def test_effective_section_is_the_one_before_plus_the_handler(node: Node) -> None:
    node.write("config.toml", KUBEADM)
    before = node.cri()
    node.apply()
    after = node.cri()
    nvidia = after["containerd"]["runtimes"].pop("nvidia")
    assert nvidia["runtime_type"] == "io.containerd.runc.v2"
    assert nvidia["options"]["SystemdCgroup"] is True
    assert nvidia["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    if node.wanted.cdi:
        assert after.pop("enable_cdi") is True and before.pop("enable_cdi") is False
    assert after == before
    assert after["sandbox_image"] == "mirror.example/pause:3.10"


def test_later_changes_of_the_main_file_flow_through(node: Node) -> None:
    node.write("config.toml", KUBEADM)
    node.apply()
    with open(node.main) as file:
        node.write("config.toml", file.read().replace("pause:3.10", "pause:3.11"))
    assert list(node.apply()) == [node.drop_in]
    assert node.cri()["sandbox_image"] == "mirror.example/pause:3.11"


def test_drop_ins_of_others_before_ours_are_taken_over(node: Node) -> None:
    node.write("config.toml", 'version = 2\nimports = [\n  "{dir}/conf.d/*.toml",  # site\n]\n')
    node.write("conf.d/50-mirrors.toml", MIRRORS)
    changes = node.apply()
    assert list(changes) == [node.drop_in]
    assert node.cri()["registry"]["mirrors"]["mirror.example"]["endpoint"] == ["https://mirror.example"]
    assert "nvidia" in node.cri()["containerd"]["runtimes"]


def test_a_file_that_nobody_imports_stays_so(node: Node) -> None:
    node.write("config.toml", DEBIAN)
    node.write("conf.d/zz-forgotten.toml", MIRRORS)
    node.apply()
    assert node.cri()["registry"]["mirrors"] == {}


def test_nvidia_as_the_default_gives_way_to_runc(node: Node) -> None:
    section = f'version = 2\n[plugins."{CRI}".containerd]\ndefault_runtime_name = "nvidia"\n'
    for name in ("nvidia", "runc"):
        section += f'[plugins."{CRI}".containerd.runtimes.{name}]\nruntime_type = "io.containerd.runc.v2"\n'
    node.write("config.toml", section)
    node.apply()
    assert node.cri()["containerd"]["default_runtime_name"] == "runc"


# main file, words of the refusal
REFUSED: list[tuple[str | bytes, list[str]]] = [
    ("", ["no 'version'"]),
    ('[plugins.cri]\nsandbox_image = "x"\n', ["/config.toml", "no 'version'", "dialect 1"]),
    ("version = 3\n", ["dialect 3"]),
    ('disabled_plugins = ["cri"]\n', ["/config.toml", "disabled_plugins"]),
    (f'version = 2\ndisabled_plugins = ["{CRI}"]\n', ["/config.toml", "disabled_plugins"]),
    (b"\xef\xbb\xbfversion = 2\n", ["/config.toml", "byte order mark"]),
    (b"version = 2 # \xff\n", ["/config.toml", "UTF-8"]),
    ("version = 2\n}\n", ["/config.toml", "line 2"]),
    (
        f"version = 2\n[plugins.\"{CRI}\".registry]\n[plugins.'{CRI}'.registry]\n",
        ["/config.toml", "registry", "twice", "line 3"],
    ),
    ('version = 2\nimports = ["missing.toml"]\n', ["/missing.toml", "does not exist"]),
]
# Only the daemon knows the types of its settings, and it has its own words for them.
REFUSED_BY = {"stand-in": [], "real": [(f'version = 2\n[plugins."{CRI}"]\nmax_concurrent_downloads = "many"\n', [])]}


@pytest.mark.parametrize(
    ("node", "content", "words"),
    [(containerd, *case) for containerd in CONTAINERDS for case in REFUSED + REFUSED_BY[containerd]],
    indirect=["node"],
)
def test_refused_main_files(node: Node, content: str | bytes, words: list[str]) -> None:
    path = node.write("config.toml", content)
    refusal = node.refusal()
    assert [word for word in words if word not in refusal] == []
    assert not os.path.exists(node.drop_in)
    with open(path, "rb") as file:
        assert file.read() == (content if isinstance(content, bytes) else content.encode())


def test_a_cri_section_after_ours_is_refused_with_both_names(node: Node) -> None:
    node.write("config.toml", 'version = 2\nimports = ["{dir}/conf.d/*.toml"]\n')
    node.write("conf.d/zz-mirrors.toml", MIRRORS)
    assert "/conf.d/zz-mirrors.toml is read after /conf.d/99-nvidia.toml" in node.refusal()


def test_an_import_needs_no_version_of_its_own(node: Node) -> None:
    node.write("config.toml", 'version = 2\nimports = ["mirrors.toml"]\n')
    node.write("mirrors.toml", MIRRORS.replace("version = 2\n", ""))
    node.apply()
    assert "mirror.example" in node.cri()["registry"]["mirrors"]
    assert "nvidia" in node.cri()["containerd"]["runtimes"]


def test_a_drop_in_that_was_made_by_somebody_else_is_replaced(node: Node) -> None:
    node.write("config.toml", KUBEADM)
    node.apply()
    with open(node.drop_in) as file:
        wanted = file.read()
    node.write("conf.d/99-nvidia.toml", f'version = 2\n[plugins."{CRI}"]\nsandbox_image = "stale"\n')
    assert list(node.apply()) == [node.drop_in]
    with open(node.drop_in) as file:
        assert file.read() == wanted
