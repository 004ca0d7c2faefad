package docker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

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
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "vrouter"), text, 0o755)
	}
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	bind := func(name, what, dir string) map[string]any {
		return map[string]any{"name": name, "description": what, "settable": []string{"source"}, "source": dir, "destination": dir, "type": "bind", "options": []string{"rbind"}}
	}
	// docs.docker.com/engine/extend/config describes it: Docker runs a managed plugin in a container.
	text, err = json.MarshalIndent(map[string]any{
		"description": "vrouter's networks and addresses, for containers and swarms",
		"entrypoint":  []string{"/vrouter", "docker", "--scope", scopeGlobal},
		"workdir":     "/",
		"interface":   map[string]any{"types": []string{"docker.networkdriver/1.0", "docker.ipamdriver/1.0"}, "socket": "vrouter.sock"},
		"network":     map[string]string{"type": "host"},
		"linux":       map[string][]string{"capabilities": {"CAP_NET_ADMIN"}},
		"mounts": []any{
			bind("run", "folder of the agent's socket", "/run/vrouter"),
			bind("state", "folder of the stored docker networks", "/var/lib/vrouter"),
		},
		"args": map[string]any{"name": "args", "description": "arguments of `vrouter docker`", "settable": []string{"value"}, "value": []string{}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), append(text, '\n'), 0o644)
}
