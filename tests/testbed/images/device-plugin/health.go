// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	watchedEvents = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeSingleBitEccError
	eventTimeout  = 1000 // milliseconds; stopping takes as long
)

// applicationXIDs are the fault of a program, not of the GPU.
var applicationXIDs = []uint64{13, 31, 43, 45, 68, 109}

// watchHealth sends GPUs that got a critical XID, or that cannot be watched, until it is stopped. A GPU never becomes healthy again.
func watchHealth(stopped <-chan struct{}, library nvml.Interface, gpus []*gpu, unhealthy chan<- *gpu) {
	report := func(affected ...*gpu) {
		for _, gpu := range affected {
			select {
			case unhealthy <- gpu:
			case <-stopped:
			}
		}
	}
	ignored, enabled := ignoredXIDs(os.Getenv("DP_DISABLE_HEALTHCHECKS"))
	if !enabled {
		return
	}
	set, status := library.EventSetCreate()
	if status != nvml.SUCCESS {
		log.Printf("Cannot create an event set, marking all devices as unhealthy: %v", status)
		report(gpus...)
		return
	}
	defer set.Free()

	for _, gpu := range gpus {
		supported, status := gpu.parent.GetSupportedEventTypes()
		if status == nvml.SUCCESS {
			status = gpu.parent.RegisterEvents(supported&watchedEvents, set)
		}
		if status != nvml.SUCCESS {
			log.Printf("Cannot watch the health of %s, marking it as unhealthy: %v", gpu.uuid, status)
			report(gpu)
		}
	}
	for {
		select {
		case <-stopped:
			return
		default:
		}
		event, status := set.Wait(eventTimeout)
		switch {
		case status == nvml.ERROR_TIMEOUT:
		case status != nvml.SUCCESS:
			log.Printf("Error waiting for event, marking all devices as unhealthy: %v", status)
			report(gpus...)
			return
		case event.EventType != nvml.EventTypeXidCriticalError || slices.Contains(ignored, event.EventData):
			log.Printf("Skipping event %d with data %d.", event.EventType, event.EventData)
		default:
			report(affected(event, gpus)...)
		}
	}
}

// affected are the devices that an event is about: all when NVML does not say which GPU, all of a GPU when it does not say which instance.
func affected(event nvml.EventData, gpus []*gpu) []*gpu {
	uuid, status := event.Device.GetUUID()
	if status != nvml.SUCCESS {
		log.Printf("XID %d on a device without UUID (%v), marking all devices as unhealthy.", event.EventData, status)
		return gpus
	}
	var found []*gpu
	for _, gpu := range gpus {
		whole := gpu.gi == noInstance || event.GpuInstanceId == noInstance || event.ComputeInstanceId == noInstance
		if gpu.parentUUID == uuid && (whole || gpu.gi == event.GpuInstanceId && gpu.ci == event.ComputeInstanceId) {
			log.Printf("XID %d on %s, marking %s as unhealthy.", event.EventData, uuid, gpu.uuid)
			found = append(found, gpu)
		}
	}
	return found
}

// ignoredXIDs reads DP_DISABLE_HEALTHCHECKS: "all" and "xids" turn the checks off, numbers are ignored besides the usual ones.
func ignoredXIDs(text string) (ignored []uint64, enabled bool) {
	ignored = slices.Clone(applicationXIDs)
	for word := range strings.SplitSeq(strings.ToLower(text), ",") {
		if word == "all" || word == "xids" {
			return nil, false
		}
		if number, err := strconv.ParseUint(strings.TrimSpace(word), 10, 64); err == nil {
			ignored = append(ignored, number)
		}
	}
	return ignored, true
}
