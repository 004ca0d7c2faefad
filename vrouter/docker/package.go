package docker

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// managedConfig is the config.json of a managed plugin, which Docker runs in a
// container (docs.docker.com/engine/extend/config).
type managedConfig struct {
	Description string              `json:"description"`
	Entrypoint  []string            `json:"entrypoint"`
	WorkDir     string              `json:"workdir"`
	Interface   managedInterface    `json:"interface"`
	Network     map[string]string   `json:"network"`
	Linux       map[string][]string `json:"linux"`
	Mounts      []managedMount      `json:"mounts"`
	Args        managedArgs         `json:"args"`
}

type managedInterface struct {
	Types  []string `json:"types"`
	Socket string   `json:"socket"`
}

type managedMount struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Settable    []string `json:"settable"`
	Source      string   `json:"source"`
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Options     []string `json:"options"`
}

type managedArgs struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Settable    []string `json:"settable"`
	Value       []string `json:"value"`
}

// Package writes a program as a managed plugin, for `docker plugin create`. Swarms
// accept only managed plugins. The program must be statically linked. The folder
// must not exist.
func Package(dir, program string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of the plugin: %w; give a folder that does not exist", err)
	}
	root := filepath.Join(dir, "rootfs")
	for _, d := range []string{"run/docker/plugins", "run/vrouter", "var/lib/vrouter"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	if err := copyProgram(program, filepath.Join(root, "vrouter")); err != nil {
		return err
	}
	bind := func(name, what, dir string) managedMount {
		return managedMount{name, what, []string{"source"}, dir, dir, "bind", []string{"rbind"}}
	}
	text, err := json.MarshalIndent(managedConfig{
		Description: "vrouter's networks and addresses, for containers and swarms",
		Entrypoint:  []string{"/vrouter", "docker", "--scope", scopeGlobal},
		WorkDir:     "/",
		Interface:   managedInterface{[]string{"docker.networkdriver/1.0", "docker.ipamdriver/1.0"}, "vrouter.sock"},
		Network:     map[string]string{"type": "host"},
		Linux:       map[string][]string{"capabilities": {"CAP_NET_ADMIN"}},
		Mounts: []managedMount{
			bind("run", "folder of the agent's socket", "/run/vrouter"),
			bind("state", "folder of the stored docker networks", "/var/lib/vrouter"),
		},
		Args: managedArgs{"args", "arguments of `vrouter docker`", []string{"value"}, []string{}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), append(text, '\n'), 0o644)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("copy the program: %w", err)
	}
	return out.Close()
}
