// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// noInstance is what NVML calls the instances of a GPU that has none.
const noInstance = 0xFFFFFFFF

// gpu is one schedulable device: a whole GPU, or a MIG device of one.
type gpu struct {
	uuid, index string
	paths       []string
	parent      nvml.Device // of a MIG device the GPU, else itself: what events are about
	parentUUID  string
	gi, ci      uint32
}

// resources are the devices that kubelet counts under one name, without the domain nvidia.com.
type resources map[string][]*gpu

// findResources asks NVML for what there is to advertise, by the rules of NVIDIA's plugin.
func findResources(gpus device.Interface, strategy string) (resources, error) {
	found := resources{}
	if err := gpus.VisitDevices(func(i int, parent device.Device) error {
		enabled, err := parent.IsMigEnabled()
		if err != nil {
			return fmt.Errorf("error checking if MIG is enabled on GPU: %w", err)
		}
		if enabled && strategy != "none" {
			return nil
		}
		return found.add("gpu", strconv.Itoa(i), parent, nil)
	}); err != nil {
		return nil, fmt.Errorf("error building GPU device map: %w", err)
	}
	if strategy == "none" {
		return found, nil
	}
	whole := len(found["gpu"])
	if err := gpus.VisitMigDevices(func(i int, parent device.Device, j int, mig device.MigDevice) error {
		profile, err := mig.GetProfile()
		if err != nil {
			return fmt.Errorf("error getting MIG profile for MIG device at index '(%d, %d)': %w", i, j, err)
		}
		name := "gpu"
		if strategy == "mixed" {
			if info := profile.GetInfo(); info.C != info.G {
				return fmt.Errorf("MIG profile '%v' does not match any resource patterns", profile)
			}
			name = "mig-" + strings.ReplaceAll(profile.String(), "+", ".")
		}
		return found.add(name, fmt.Sprintf("%d:%d", i, j), parent, mig)
	}); err != nil {
		return nil, fmt.Errorf("error building MIG device map: %w", err)
	}
	if err := checkMIG(gpus, strategy); err != nil {
		return nil, fmt.Errorf("invalid MIG configuration: %w", err)
	}
	if strategy == "single" && whole > 0 && len(found["gpu"]) > whole {
		return nil, fmt.Errorf("all devices on the node must be configured with the same migEnabled value")
	}
	return found, nil
}

// add describes a device; mig is nil for a whole GPU.
func (r resources) add(name, index string, parent device.Device, mig nvml.Device) error {
	minor, status := parent.GetMinorNumber()
	if status != nvml.SUCCESS {
		return fmt.Errorf("error getting GPU device minor number: %v", status)
	}
	uuid, status := parent.GetUUID()
	if status != nvml.SUCCESS {
		return fmt.Errorf("error getting UUID device: %v", status)
	}
	found := &gpu{uuid: uuid, index: index, parent: parent, parentUUID: uuid, gi: noInstance, ci: noInstance}
	found.paths = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	if mig != nil {
		if err := found.narrow(mig, minor); err != nil {
			return err
		}
	}
	r[name] = append(r[name], found)
	return nil
}
