// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"path/filepath"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/spec"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/transform/root"
	"github.com/sirupsen/logrus"
)

const (
	cdiDirectory = "/var/run/cdi"
	cdiVendor    = "k8s.device-plugin.nvidia.com"
	cdiClass     = "gpu"
)

func cdiName(gpu *gpu) string {
	return fmt.Sprintf("%s/%s=%s", cdiVendor, cdiClass, gpu.uuid)
}

// writeCDISpec describes the node's GPUs for the container runtime. Driver files are found where the driver's root is mounted in this
// container and named by where they are on the node.
func writeCDISpec(library nvml.Interface, config *Config) error {
	byUUID, err := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyUUID)
	if err != nil {
		return err
	}
	logger := logrus.New()
	logger.SetLevel(logrus.ErrorLevel) // it warns about every file of a desktop's driver
	driverRoot := *config.Flags.Plugin.ContainerDriverRoot
	generator, err := nvcdi.New(
		nvcdi.WithLogger(logger),
		nvcdi.WithMode(nvcdi.ModeNvml),
		nvcdi.WithNvmlLib(library),
		nvcdi.WithDeviceNamers(byUUID),
		nvcdi.WithDriverRoot(driverRoot),
		nvcdi.WithDevRoot(driverRoot),
		nvcdi.WithNVIDIACDIHookPath(*config.Flags.Plugin.NvidiaCTKPath),
		nvcdi.WithVendor(cdiVendor),
		nvcdi.WithClass(cdiClass),
	)
	if err != nil {
		return err
	}
	devices, err := generator.GetDeviceSpecsByID("all")
	if err != nil {
		return fmt.Errorf("failed to get CDI device specs: %w", err)
	}
	common, err := generator.GetCommonEdits()
	if err != nil {
		return fmt.Errorf("failed to get common CDI spec edits: %w", err)
	}
	description, err := spec.New(
		spec.WithVendor(cdiVendor),
		spec.WithClass(cdiClass),
		spec.WithDeviceSpecs(devices),
		spec.WithEdits(*common.ContainerEdits),
		spec.WithFormat(spec.FormatJSON),
	)
	if err != nil {
		return err
	}
	toHost := root.New(root.WithRoot(driverRoot), root.WithTargetRoot(*config.Flags.NvidiaDriverRoot), root.WithRelativeTo("host"))
	if err := toHost.Transform(description.Raw()); err != nil {
		return err
	}
	return description.Save(filepath.Join(cdiDirectory, cdiVendor+"-"+cdiClass+".json"))
}
