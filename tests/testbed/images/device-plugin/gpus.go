// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpu is one schedulable device.
type gpu struct {
	uuid, index string
	paths       []string
	device      nvml.Device
}

// resource is what kubelet counts under one name.
type resource struct {
	name string // without the domain nvidia.com
	gpus []*gpu
}

// findResources asks NVML for what there is to advertise. All strategies agree as long as no GPU is in MIG mode; "none" counts
// GPUs in MIG mode as whole ones.
func findResources(library nvml.Interface, config *Config) ([]*resource, error) {
	count, status := library.DeviceGetCount()
	if status != nvml.SUCCESS {
		return nil, fmt.Errorf("error getting device count: %v", status)
	}
	whole := &resource{name: "gpu"}
	for i := range count {
		device, status := library.DeviceGetHandleByIndex(i)
		if status != nvml.SUCCESS {
			return nil, fmt.Errorf("error getting device handle for index %d: %v", i, status)
		}
		if mode, _, status := device.GetMigMode(); status == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE && *config.Flags.MigStrategy != "none" {
			return nil, fmt.Errorf("device %d is in MIG mode: this stand-in does not simulate MIG strategy %s yet", i, *config.Flags.MigStrategy)
		}
		found, err := describe(i, device)
		if err != nil {
			return nil, fmt.Errorf("error describing device %d: %w", i, err)
		}
		whole.gpus = append(whole.gpus, found)
	}
	return []*resource{whole}, nil
}

func describe(index int, device nvml.Device) (*gpu, error) {
	uuid, status := device.GetUUID()
	if status != nvml.SUCCESS {
		return nil, fmt.Errorf("no UUID: %v", status)
	}
	minor, status := device.GetMinorNumber()
	if status != nvml.SUCCESS {
		return nil, fmt.Errorf("no minor number: %v", status)
	}
	return &gpu{uuid: uuid, index: strconv.Itoa(index), paths: []string{fmt.Sprintf("/dev/nvidia%d", minor)}, device: device}, nil
}
