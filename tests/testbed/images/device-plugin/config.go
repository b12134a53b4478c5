// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

// Config is version v1 of the plugin's configuration file, as far as it is simulated. What the environment sets wins over the file.
type Config struct {
	Version string `json:"version,omitempty"`
	Flags   struct {
		MigStrategy      *string `json:"migStrategy,omitempty"`
		FailOnInitError  *bool   `json:"failOnInitError,omitempty"`
		NvidiaDriverRoot *string `json:"nvidiaDriverRoot,omitempty"`
		Plugin           struct {
			PassDeviceSpecs     *bool   `json:"passDeviceSpecs,omitempty"`
			DeviceListStrategy  *list   `json:"deviceListStrategy,omitempty"`
			DeviceIDStrategy    *string `json:"deviceIDStrategy,omitempty"`
			CDIAnnotationPrefix *string `json:"cdiAnnotationPrefix,omitempty"`
			NvidiaCTKPath       *string `json:"nvidiaCTKPath,omitempty"`
			ContainerDriverRoot *string `json:"containerDriverRoot,omitempty"`
		} `json:"plugin"`
	} `json:"flags"`
	Sharing map[string]any `json:"sharing,omitempty"`
}

// list is written as a list, or as text when it has one entry.
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*l = list{text}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

func loadConfig() (*Config, error) {
	config := &Config{Version: "v1"}
	if path := os.Getenv("CONFIG_FILE"); path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("unable to read config file: %w", err)
		}
		if err := yaml.Unmarshal(content, config); err != nil {
			return nil, fmt.Errorf("unable to parse config file %s: %w", path, err)
		}
	}
	flags, plugin := &config.Flags, &config.Flags.Plugin
	setText(&flags.MigStrategy, "none", "MIG_STRATEGY")
	setText(&flags.NvidiaDriverRoot, "/", "NVIDIA_DRIVER_ROOT")
	setText(&plugin.DeviceIDStrategy, "uuid", "DEVICE_ID_STRATEGY")
	setText(&plugin.CDIAnnotationPrefix, "cdi.k8s.io/", "CDI_ANNOTATION_PREFIX")
	setText(&plugin.NvidiaCTKPath, "/usr/bin/nvidia-ctk", "NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH")
	setText(&plugin.ContainerDriverRoot, "/driver-root", "DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT")
	if err := setBool(&flags.FailOnInitError, true, "FAIL_ON_INIT_ERROR"); err != nil {
		return nil, err
	}
	if err := setBool(&plugin.PassDeviceSpecs, false, "PASS_DEVICE_SPECS"); err != nil {
		return nil, err
	}
	if text := os.Getenv("DEVICE_LIST_STRATEGY"); text != "" {
		strategies := list(strings.Split(text, ","))
		plugin.DeviceListStrategy = &strategies
	} else if plugin.DeviceListStrategy == nil {
		plugin.DeviceListStrategy = &list{"envvar"}
	}
	return config, config.validate()
}

func (c *Config) validate() error {
	if c.Version != "v1" {
		return fmt.Errorf("unknown version: %s", c.Version)
	}
	if !slices.Contains([]string{"none", "single", "mixed"}, *c.Flags.MigStrategy) {
		return fmt.Errorf("unknown MIG strategy: %s", *c.Flags.MigStrategy)
	}
	if !slices.Contains([]string{"uuid", "index"}, *c.Flags.Plugin.DeviceIDStrategy) {
		return fmt.Errorf("invalid --device-id-strategy option %q", *c.Flags.Plugin.DeviceIDStrategy)
	}
	for _, strategy := range *c.Flags.Plugin.DeviceListStrategy {
		if !slices.Contains([]string{"envvar", "volume-mounts", "cdi-annotations", "cdi-cri"}, strategy) {
			return fmt.Errorf("invalid --device-list-strategy option %q", strategy)
		}
	}
	// Sharing belongs here: replicas become more devices a GPU in findResources.
	if len(c.Sharing) > 0 {
		return fmt.Errorf("this stand-in does not simulate sharing yet")
	}
	return nil
}

// uses tells whether a container learns of its devices in one of these ways.
func (c *Config) uses(strategies ...string) bool {
	return slices.ContainsFunc(*c.Flags.Plugin.DeviceListStrategy, func(strategy string) bool { return slices.Contains(strategies, strategy) })
}

// nvmlPath is the driver's own library where its root is mounted, else what the nvidia runtime put in the container.
func (c *Config) nvmlPath() string {
	const name = "libnvidia-ml.so.1"
	for _, directory := range []string{"usr/lib64", "usr/lib/x86_64-linux-gnu", "lib64", "lib/x86_64-linux-gnu"} {
		path := filepath.Join(*c.Flags.Plugin.ContainerDriverRoot, directory, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func (c *Config) String() string {
	text, _ := json.Marshal(c)
	return string(text)
}

func kubeletSocket() string {
	if path := os.Getenv("KUBELET_SOCKET"); path != "" {
		return path
	}
	return pluginapi.KubeletSocket
}

// setText settles an option: the first of the variables that is set, else the file's value, else the fallback.
func setText(option **string, fallback string, variables ...string) {
	for _, variable := range variables {
		if text := os.Getenv(variable); text != "" {
			*option = &text
			return
		}
	}
	if *option == nil {
		*option = &fallback
	}
}

func setBool(option **bool, fallback bool, variable string) error {
	if text := os.Getenv(variable); text != "" {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
		*option = &value
	} else if *option == nil {
		*option = &fallback
	}
	return nil
}
