# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import platform
import stat
import sys
import time
import typing as t

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime import configure
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.daemons import Daemon
from ansible_collections.kubegpu.nvidia.plugins.modules import container_runtime
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._runtime import fake_containerd

MAIN = (
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\n  password = "tell-nobody"\n'
)
TOOLKIT = "#accept-nvidia-visible-devices-envvar-when-unprivileged = true\ndisable-require = false\n[nvidia-ctk]\n"
KEY = "accept-nvidia-visible-devices-envvar-when-unprivileged"


class Host:
    def __init__(self, directory: t.Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capfd = capfd
        self.main = directory / "config.toml"
        self.drop_in = directory / "conf.d" / "99-nvidia.toml"
        self.toolkit = directory / "toolkit.toml"
        self.binary = directory / "nvidia-container-runtime"
        self.main.write_text(MAIN)
        self.main.chmod(0o600)
        self.toolkit.write_text(TOOLKIT)
        self.binary.touch(mode=0o755)
        self.started = time.time() + 1000
        self.version = "1.7.24"
        self.daemons = 1
        monkeypatch.setattr(container_runtime, "find_daemons", lambda _run_command: [self.daemon()] * self.daemons)
        monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda _module, argv, **options: self.command(argv))

    def daemon(self) -> Daemon:
        return Daemon(
            name="containerd",
            binary="/usr/bin/containerd",
            unit="containerd.service",
            config_path=str(self.main),
            socket="/run/containerd/containerd.sock",
            version=self.version,
            running=True,
            pid=77,
            started=self.started,
        )

    def command(self, argv: list[str]) -> tuple[int, str, str]:
        if argv[0] in ("crictl", "ctr"):
            raise FileNotFoundError(argv[0])
        return fake_containerd.run_command(argv)

    def run(self, **arguments: t.Any) -> dict[str, t.Any]:
        paths = {"binary": str(self.binary), "toolkit_config": str(self.toolkit), "_ansible_diff": True}
        internal = {"_ansible_remote_tmp": str(self.directory), "_ansible_keep_remote_files": False}
        with patch_module_args({**paths, **internal, **arguments}), pytest.raises(SystemExit):
            container_runtime.main()
        return t.cast("dict[str, t.Any]", json.loads(self.capfd.readouterr().out))

    def files(self) -> dict[str, bytes]:
        folders = [self.directory, self.directory / "conf.d"]
        return {str(path): path.read_bytes() for folder in folders for path in folder.glob("*") if path.is_file()}


@pytest.fixture
def host(tmp_path: t.Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, monkeypatch, capfd)


def test_check_real_and_again(host: Host) -> None:
    before = host.files()
    predicted = host.run(_ansible_check_mode=True)
    assert host.files() == before
    done = host.run()
    assert predicted["changed"] and done["changed"] and predicted["diff"] == done["diff"]
    assert [entry["after_header"] for entry in done["diff"]] == [str(host.toolkit), str(host.drop_in), str(host.main)]
    assert predicted["restart_required"] and "would change" in predicted["runtimes"][0]["restart_reason"]
    assert host.toolkit.read_text().splitlines()[1] == f"{KEY} = false"
    assert host.files().keys() == {*before, str(host.drop_in)}

    again = host.run()
    assert not again["changed"] and again["diff"] == [] and again["runtimes"][0]["verified"]
    assert host.run(_ansible_check_mode=True)["runtimes"] == again["runtimes"]


def test_restart_is_decided_by_state(host: Host) -> None:
    host.run()
    host.started = os.stat(host.main).st_ctime - 1
    for check_mode in (True, False):
        result = host.run(_ansible_check_mode=check_mode)
        assert not result["changed"] and result["restart_required"]
        assert not result["runtimes"][0]["verified"]
    host.started += 1000
    assert not host.run()["restart_required"]


def test_only_the_toolkits_file_needs_no_restart(host: Host) -> None:
    host.run()
    host.toolkit.write_text(f"{KEY} = true\n")
    predicted = host.run(_ansible_check_mode=True)
    assert predicted["changed"] and not predicted["restart_required"]


def test_secrets_stay_secret(host: Host) -> None:
    result = host.run()
    assert "tell-nobody" in host.drop_in.read_text() and "tell-nobody" not in json.dumps(result)
    assert os.stat(host.drop_in).st_mode & 0o777 == 0o600
    host.main.chmod(0o644)
    assert host.run()["changed"] and os.stat(host.drop_in).st_mode & 0o777 == 0o644


def test_secrets_are_not_shown_for_a_moment(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = basic.AnsibleModule.atomic_move

    def look(path: str) -> None:
        if os.path.exists(path):
            with open(path) as file:
                seen.append(("tell-nobody" in file.read(), stat.S_IMODE(os.stat(path).st_mode)))

    def atomic_move(module: basic.AnsibleModule, source: str, target: str) -> None:
        if target == str(host.drop_in):
            look(target)
        original(module, source, target)
        if target == str(host.drop_in):
            look(target)

    monkeypatch.setattr(basic.AnsibleModule, "atomic_move", atomic_move)
    umask = os.umask(0o022)
    try:
        host.run()
        assert seen == [(True, 0o600)], "a new file"
        host.drop_in.write_text("version = 2\n")
        host.drop_in.chmod(0o644)
        host.run()
        assert seen[1:] == [(False, 0o600), (True, 0o600)], "one that everybody can read"
        host.main.write_text(MAIN.partition("[")[0])
        host.main.chmod(0o644)
        host.run()
        assert seen[3:] == [(True, 0o600), (False, 0o600)], "one without secrets from now on"
        assert os.stat(host.drop_in).st_mode & 0o777 == 0o644
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(umask)


def test_a_new_drop_in_is_as_readable_as_the_main_file(host: Host) -> None:
    host.main.chmod(0o644)
    host.run()
    assert os.stat(host.drop_in).st_mode & 0o777 == 0o644
    assert not host.run()["changed"]


def test_a_python_without_a_toml_reader(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, name, None)
    before = host.files()
    message = host.run()["msg"]
    assert [word for word in ("python3-tomli", sys.executable, platform.python_version()) if word not in message] == []
    assert host.files() == before


def test_without_the_toolkit_only_check_mode_goes_on(host: Host) -> None:
    host.binary.unlink()
    assert "install the package nvidia-container-toolkit" in host.run()["msg"]
    host.toolkit.unlink()
    predicted = host.run(_ansible_check_mode=True)
    assert predicted["changed"] and predicted["diff"][0]["after"] == f"{KEY} = false\n"
    host.binary.touch(mode=0o755)
    assert str(host.toolkit) in host.run()["msg"]
    assert not host.drop_in.exists()


def test_without_a_diff_there_is_none(host: Host) -> None:
    assert "diff" not in host.run(_ansible_diff=False)


def test_a_kill_between_two_files_leaves_what_works(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []

    def atomic_move(_module: t.Any, source: str, target: str) -> None:
        moves.append(target)
        if len(moves) == 3:
            raise KeyboardInterrupt
        os.rename(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(basic.AnsibleModule, "atomic_move", atomic_move)
        host.run()
    assert moves[2] == str(host.main) and host.main.read_text() == MAIN
    assert [name for name in host.files() if name.endswith(".new")] == []
    assert host.run()["changed"] and not host.run()["changed"]


@pytest.mark.parametrize(("version", "words"), [("1.6.20", "1.7.16"), ("1.7.15", "1.7.16")])
def test_containerd_without_cdi_is_refused(host: Host, version: str, words: str) -> None:
    host.version = version
    assert words in host.run()["msg"]
    assert host.run(cdi=False)["changed"]


def test_one_daemon_is_wanted(host: Host) -> None:
    host.daemons = 0
    assert "No container runtime" in host.run()["msg"]
    host.daemons = 2
    assert "More than one containerd" in host.run()["msg"]


def test_masking_covers_the_ways_to_write_a_password() -> None:
    masked = configure._masked('  password = \'a\'\n"auth"="b"\nidentitytoken = ""\npasswords = 1\n')
    assert "'a'" not in masked and '"b"' not in masked and "passwords = 1" in masked
