// Copyright (c) 2026 KubeGPU contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Stands in for NVIDIA's Kubernetes device plugin where its image cannot be had. It takes the same environment, mounts and
// configuration file, and everything it advertises comes from NVML, so a manifest that works with it says something about the real one.
package main

import (
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/fsnotify/fsnotify"
)

const retryInterval = 30 * time.Second

// errNoNVML: nothing in the container tells that this could be a GPU node.
var errNoNVML = errors.New("invalid device discovery strategy")

func main() {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	if err := run(); err != nil {
		log.Fatalf("Error: %v", err)
	}
}

// run serves until it is told to end. It starts over when kubelet was restarted (its socket is a new one), when asked to by SIGHUP,
// and after a while when kubelet could not be reached.
func run() error {
	socket := kubeletSocket()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch for kubelet restarts: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(socket)); err != nil {
		return fmt.Errorf("cannot watch %s: %w", filepath.Dir(socket), err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)

	for {
		plugins, err := start(socket)
		if err != nil {
			return fmt.Errorf("error starting plugins: %w", err)
		}
		again := wait(socket, watcher, signals, plugins.retry())
		plugins.stop()
		if !again {
			return nil
		}
	}
}

// wait returns true when everything has to start over, false when the process has to end.
func wait(socket string, watcher *fsnotify.Watcher, signals <-chan os.Signal, retry <-chan time.Time) bool {
	for {
		select {
		case <-retry:
			return true
		case event := <-watcher.Events:
			if event.Name == socket && event.Has(fsnotify.Create) {
				log.Printf("%s was created anew, restarting.", socket)
				return true
			}
		case err := <-watcher.Errors:
			log.Printf("Watching for kubelet restarts: %v", err)
		case received := <-signals:
			log.Printf("Received %v.", received)
			return received == syscall.SIGHUP
		}
	}
}

// plugins are the servers of one start, one a resource.
type plugins struct {
	library  nvml.Interface
	servers  []*server
	watchers sync.WaitGroup
	failed   bool
}

func start(socket string) (*plugins, error) {
	config, err := loadConfig()
	if err != nil {
		return nil, fmt.Errorf("unable to load config: %w", err)
	}
	log.Printf("Running with config: %s", config)

	exposeDriver(*config.Flags.Plugin.ContainerDriverRoot)
	library := nvml.New(nvml.WithLibraryPath(config.nvmlPath()))
	if err := initialise(library); err != nil {
		if *config.Flags.FailOnInitError {
			return nil, err
		}
		log.Printf("%v", err)
		log.Print("No devices found. Waiting indefinitely.")
		return &plugins{}, nil
	}

	started := &plugins{library: library}
	resources, err := findResources(device.New(library), *config.Flags.MigStrategy)
	if err != nil {
		started.stop()
		return nil, fmt.Errorf("error building device map from config.resources: %w", err)
	}
	if config.uses("cdi-annotations", "cdi-cri") {
		if err := writeCDISpec(library, config); err != nil {
			started.stop()
			return nil, fmt.Errorf("unable to create cdi spec file: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		server := newServer(name, resources[name], config, filepath.Dir(socket))
		started.servers = append(started.servers, server)
		if err := server.start(socket); err != nil {
			log.Printf("Could not register %s with kubelet, next try in %v: %v", name, retryInterval, err)
			started.failed = true
			break
		}
		started.watchers.Go(func() { watchHealth(server.stopped, library, server.gpus, server.unhealthy) })
	}
	if len(started.servers) == 0 {
		log.Print("No devices found. Waiting indefinitely.")
	}
	return started, nil
}

// initialise opens NVML. The library that is missing altogether is the sign of a container that was not started by the nvidia runtime.
func initialise(library nvml.Interface) error {
	switch status := library.Init(); status {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		log.Print("Incompatible strategy detected auto")
		log.Print("If this is a GPU node, was this container started by the nvidia runtime (runtimeClassName, or the node's default runtime)?")
		log.Print("If this is not a GPU node, keep this plugin away from it with a nodeSelector or a taint.")
		return errNoNVML
	default:
		return fmt.Errorf("failed to initialize NVML: %v", status)
	}
}

// retry fires when a server could not be registered.
func (p *plugins) retry() <-chan time.Time {
	if p.failed {
		return time.After(retryInterval)
	}
	return nil
}

func (p *plugins) stop() {
	for _, server := range p.servers {
		server.stop()
	}
	p.watchers.Wait() // they are inside the library, which Shutdown closes
	if p.library != nil {
		p.library.Shutdown()
	}
}
