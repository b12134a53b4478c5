# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which API server, as whom: kubernetes.core's options, read as kubernetes.core reads them. Private to the collection.

Its own client cannot be used: it asks the server for what it offers while it is built, and without a time limit, so
that a server that does not answer would hang the play.
"""

from __future__ import annotations

import os
import socket
import typing as t

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import (
    AUTH_ARG_MAP,
    AUTH_ARG_SPEC,
    AUTH_PROXY_HEADERS_SPEC,
)

from .._errors import KubegpuError

try:
    import kubernetes
    import urllib3
    import yaml
except ImportError:
    pass  # reported by api_module()

Options = t.Mapping[str, t.Any]

WHAT_TO_CHECK = "Check kubeconfig, context and host (the playbooks take them from kubegpu_k8s_auth)"


def configuration(options: Options) -> t.Any:
    """The client's configuration for these options; what an option leaves open, K8S_AUTH_* may say."""
    given: dict[str, t.Any] = {}
    for attribute, option in AUTH_ARG_MAP.items():
        value = _proxy_headers(options) if option == "proxy_headers" else _value(options, option, attribute)
        if value not in (None, ""):
            given[attribute] = value
    chosen = kubernetes.client.Configuration()
    # A proxy in the environment of a play is there for downloads: only the options and the kubeconfig count.
    chosen.proxy = chosen.no_proxy = None
    # One repeated attempt to connect; whoever waits longer does it knowingly.
    chosen.retries = urllib3.Retry(total=1, read=0)
    if not _is_complete(given):
        try:
            _load(chosen, given)
        except OSError as error:
            raise _unusable(given, str(error)) from error
        except (kubernetes.config.ConfigException, yaml.YAMLError) as error:
            raise _unusable(given, " ".join(str(error).split())) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # what the client makes of any other file
            raise _unusable(given, f"it is no kubeconfig ({error})") from error
    for attribute, value in given.items():
        if attribute == "api_key":
            chosen.api_key = {"authorization": f"Bearer {value}"}
        elif attribute == "proxy_headers":
            chosen.proxy_headers = urllib3.util.make_headers(**value)
        elif attribute == "host":
            chosen.host = value.rstrip("/")
        elif attribute not in ("kubeconfig", "context", "persist_config"):
            setattr(chosen, attribute, value)
    return chosen


def impersonation(options: Options) -> list[tuple[str, str]]:
    """The headers that let the credentials act as somebody else."""
    user = _value(options, "impersonate_user")
    groups = _value(options, "impersonate_groups") or []
    if isinstance(groups, str):
        groups = [group for group in groups.split(",") if group]
    return ([("Impersonate-User", user)] if user else []) + [("Impersonate-Group", group) for group in groups]


def _value(options: Options, option: str, attribute: str = "") -> t.Any:
    if options.get(option) is not None:
        return options[option]
    value = _environment(option) or _environment(attribute)
    if value and AUTH_ARG_SPEC[option].get("type") == "bool":
        return value.lower() not in ("0", "false", "no")
    return value


def _proxy_headers(options: Options) -> dict[str, str]:
    given = options.get("proxy_headers") or {}
    from_environment = {name: _environment(f"proxy_headers_{name}") for name in AUTH_PROXY_HEADERS_SPEC}
    return {name: value for name, value in (given or from_environment).items() if value}


def _environment(name: str) -> str | None:
    return os.environ.get(f"K8S_AUTH_{name.upper()}") or None


def _is_complete(given: Options) -> bool:
    """Server and credentials are in the options: no kubeconfig is needed."""
    ways = (("username", "password"), ("api_key",), ("cert_file", "key_file"))
    return "host" in given and any(all(name in given for name in way) for way in ways)


def _unusable(given: Options, why: str) -> KubegpuError:
    source = given.get("kubeconfig")
    named = f"The kubeconfig {source}" if isinstance(source, str) else "The kubeconfig"
    return KubegpuError(f"{named} cannot be used on {socket.gethostname()}: {why.rstrip('.')}. {WHAT_TO_CHECK}.")


def _load(chosen: t.Any, given: Options) -> None:
    source, context = given.get("kubeconfig"), given.get("context")
    if not source and not context:
        try:
            kubernetes.config.load_incluster_config(client_configuration=chosen)
            return
        except kubernetes.config.ConfigException:
            pass  # not in a pod
    keep_tokens = bool(given.get("persist_config"))
    extra: dict[str, t.Any] = {"context": context, "client_configuration": chosen, "persist_config": keep_tokens}
    if isinstance(source, dict):
        kubernetes.config.load_kube_config_from_dict(config_dict=source, **extra)
        return
    paths = source or os.environ.get("KUBECONFIG") or "~/.kube/config"
    if not any(os.path.exists(os.path.expanduser(path)) for path in paths.split(os.pathsep)):
        raise KubegpuError(f"There is no kubeconfig {paths} on {socket.gethostname()}. {WHAT_TO_CHECK}.")
    kubernetes.config.load_kube_config(config_file=paths, **extra)
