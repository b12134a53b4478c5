// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	procDriver = "/proc/driver"
	migMinors  = procDriver + "/nvidia-caps/mig-minors"
)

// narrow makes the description of a GPU that of one of its MIG devices.
func (g *gpu) narrow(mig nvml.Device, minor int) error {
	uuid, status := mig.GetUUID()
	if status != nvml.SUCCESS {
		return fmt.Errorf("error getting UUID device: %v", status)
	}
	gi, status := mig.GetGpuInstanceId()
	if status != nvml.SUCCESS {
		return fmt.Errorf("error getting GPU Instance ID: %v", status)
	}
	ci, status := mig.GetComputeInstanceId()
	if status != nvml.SUCCESS {
		return fmt.Errorf("error getting Compute Instance ID: %v", status)
	}
	capabilities, err := readCapabilities()
	if err != nil {
		return fmt.Errorf("error getting MIG capability device paths: %w", err)
	}
	for _, access := range []string{fmt.Sprintf("gpu%d/gi%d/access", minor, gi), fmt.Sprintf("gpu%d/gi%d/ci%d/access", minor, gi, ci)} {
		path, exists := capabilities[access]
		if !exists {
			return fmt.Errorf("missing MIG GPU instance capability path: %s", access)
		}
		g.paths = append(g.paths, path)
	}
	g.uuid, g.gi, g.ci = uuid, uint32(gi), uint32(ci)
	return nil
}

// readCapabilities tells the device node that gives access to each instance.
func readCapabilities() (map[string]string, error) {
	content, err := os.ReadFile(migMinors)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string)
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			paths[fields[0]] = "/dev/nvidia-caps/nvidia-cap" + fields[1]
		}
	}
	return paths, nil
}

// checkMIG refuses what the strategy cannot name: with single, everything that is not the same on every GPU in MIG mode.
func checkMIG(gpus device.Interface, strategy string) error {
	if err := gpus.VisitDevices(func(i int, parent device.Device) error {
		enabled, err := parent.IsMigEnabled()
		if err != nil || !enabled {
			return err
		}
		devices, err := parent.GetMigDevices()
		if err != nil || len(devices) > 0 {
			return err
		}
		empty := fmt.Errorf("device %d has no MIG devices configured", i)
		if strategy == "single" {
			return empty
		}
		log.Print(empty)
		return nil
	}); err != nil {
		return fmt.Errorf("at least one device with migEnabled=true was not configured correctly: %w", err)
	}
	if strategy != "single" {
		return nil
	}
	var first *nvml.DeviceAttributes
	return gpus.VisitMigDevices(func(_ int, _ device.Device, _ int, mig device.MigDevice) error {
		attributes, status := mig.GetAttributes()
		if status != nvml.SUCCESS {
			return fmt.Errorf("error getting device attributes: %v", status)
		}
		if first != nil && attributes != *first {
			return fmt.Errorf("more than one MIG device type present on node")
		}
		first = &attributes
		return nil
	})
}

// exposeDriver shows the driver's files of the node in this container's /proc. A kernel shows them in every container; the simulated one
// has them on the node only.
func exposeDriver(driverRoot string) {
	source := filepath.Join(driverRoot, procDriver)
	if _, err := os.Stat(migMinors); err == nil {
		return
	}
	if _, err := os.Stat(filepath.Join(driverRoot, migMinors)); err != nil {
		return
	}
	if err := syscall.Mount(source, procDriver, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		log.Printf("MIG devices cannot be read: mounting %s at %s: %v", source, procDriver, err)
	}
}
