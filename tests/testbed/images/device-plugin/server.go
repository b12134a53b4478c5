// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	visibleDevices   = "NVIDIA_VISIBLE_DEVICES"
	volumeMountsRoot = "/var/run/nvidia-container-devices"
)

// server offers one resource to kubelet.
type server struct {
	pluginapi.UnimplementedDevicePluginServer
	resource  string // without the domain nvidia.com
	gpus      []*gpu
	config    *Config
	socket    string
	grpc      *grpc.Server
	unhealthy chan *gpu
	stopped   chan struct{}
	stopOnce  sync.Once
}

func newServer(resource string, gpus []*gpu, config *Config, directory string) *server {
	return &server{
		resource:  resource,
		gpus:      gpus,
		config:    config,
		socket:    filepath.Join(directory, "nvidia-"+resource+".sock"),
		grpc:      grpc.NewServer(),
		unhealthy: make(chan *gpu),
		stopped:   make(chan struct{}),
	}
}

// start serves and tells kubelet so.
func (s *server) start(kubelet string) error {
	os.Remove(s.socket)
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		return err
	}
	pluginapi.RegisterDevicePluginServer(s.grpc, s)
	go func() {
		if err := s.grpc.Serve(listener); err != nil {
			log.Fatalf("Serving nvidia.com/%s ended: %v", s.resource, err)
		}
	}()
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(connection).Register(deadline, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     filepath.Base(s.socket),
		ResourceName: "nvidia.com/" + s.resource,
		Options:      &pluginapi.DevicePluginOptions{},
	})
	if err == nil {
		log.Printf("Registered device plugin for 'nvidia.com/%s' with Kubelet", s.resource)
	}
	return err
}

func (s *server) stop() {
	s.stopOnce.Do(func() {
		close(s.stopped)
		s.grpc.Stop()
		os.Remove(s.socket)
	})
}

func (s *server) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch sends all devices now and again each time one became unhealthy.
func (s *server) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	devices := make(map[*gpu]*pluginapi.Device)
	answer := &pluginapi.ListAndWatchResponse{}
	for _, gpu := range s.gpus {
		devices[gpu] = &pluginapi.Device{ID: gpu.uuid, Health: pluginapi.Healthy}
		answer.Devices = append(answer.Devices, devices[gpu])
	}
	for {
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-s.stopped:
			return nil
		case <-stream.Context().Done():
			return nil
		case gpu := <-s.unhealthy:
			devices[gpu].Health = pluginapi.Unhealthy
		}
	}
}

func (s *server) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	answer := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		gpus, err := s.find(container.DevicesIds)
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, s.inject(gpus))
	}
	return answer, nil
}

func (s *server) find(ids []string) ([]*gpu, error) {
	var found []*gpu
	for _, gpu := range s.gpus {
		for _, id := range ids {
			if gpu.uuid == id {
				found = append(found, gpu)
			}
		}
	}
	if len(found) != len(ids) {
		return nil, fmt.Errorf("invalid allocation request for nvidia.com/%s: unknown device among %v", s.resource, ids)
	}
	return found, nil
}

// inject tells the container runtime which GPUs a container gets, in every configured way.
func (s *server) inject(gpus []*gpu) *pluginapi.ContainerAllocateResponse {
	answer := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{}, Annotations: map[string]string{}}
	var ids, names []string
	for _, gpu := range gpus {
		if *s.config.Flags.Plugin.DeviceIDStrategy == "index" {
			ids = append(ids, gpu.index)
		} else {
			ids = append(ids, gpu.uuid)
		}
		names = append(names, cdiName(gpu))
	}
	if s.config.uses("envvar") {
		answer.Envs[visibleDevices] = strings.Join(ids, ",")
	}
	if s.config.uses("volume-mounts") {
		answer.Envs[visibleDevices] = volumeMountsRoot
		for _, id := range ids {
			answer.Mounts = append(answer.Mounts, &pluginapi.Mount{HostPath: "/dev/null", ContainerPath: filepath.Join(volumeMountsRoot, id)})
		}
	}
	if s.config.uses("cdi-annotations") {
		// The key must be unique among the containers of a pod; the first GPU's UUID is.
		key := *s.config.Flags.Plugin.CDIAnnotationPrefix + "nvidia-device-plugin_" + gpus[0].uuid
		answer.Annotations[key] = strings.Join(names, ",")
	}
	if s.config.uses("cdi-cri") {
		for _, name := range names {
			answer.CdiDevices = append(answer.CdiDevices, &pluginapi.CDIDevice{Name: name})
		}
	}
	if *s.config.Flags.Plugin.PassDeviceSpecs {
		answer.Devices = s.deviceNodes(gpus)
	}
	return answer
}

// deviceNodes are the nodes of the GPUs and the control nodes that exist.
func (s *server) deviceNodes(gpus []*gpu) []*pluginapi.DeviceSpec {
	var nodes []*pluginapi.DeviceSpec
	add := func(path string) {
		host := filepath.Join(*s.config.Flags.NvidiaDriverRoot, path)
		nodes = append(nodes, &pluginapi.DeviceSpec{ContainerPath: path, HostPath: host, Permissions: "rw"})
	}
	for _, path := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"} {
		if _, err := os.Stat(path); err == nil {
			add(path)
		}
	}
	for _, gpu := range gpus {
		for _, path := range gpu.paths {
			add(path)
		}
	}
	return nodes
}
