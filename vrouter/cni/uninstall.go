package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/libcni"
)

// Uninstall deletes the configuration list that Install wrote with the same options. If no other
// configuration uses the program in the folder of plugins, it deletes the program and Portmap too. It keeps a link to
// the program, which belongs to a package. Missing files are no error.
func Uninstall(o InstallOptions) (removed []string, err error) {
	path, err := o.configPath()
	if err != nil {
		return nil, err
	}
	switch uses, err := usesPlugin(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("uninstall: %w", err)
	case !uses:
		return nil, fmt.Errorf("uninstall: %s has no vrouter plugin; choose the configuration with --name", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("uninstall: %w", err)
		}
		removed = append(removed, path)
	}
	others, err := libcni.ConfFiles(o.Configs, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return removed, fmt.Errorf("uninstall: read the other configurations: %w", err)
	}
	for _, other := range others {
		if uses, err := usesPlugin(other); err != nil || uses {
			return removed, nil // a configuration that cannot be read may use the program
		}
	}
	for _, name := range []string{"vrouter", Portmap} {
		program := filepath.Join(o.Binaries, name)
		switch info, err := os.Lstat(program); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return removed, fmt.Errorf("uninstall: %w", err)
		case !info.Mode().IsRegular():
			continue
		}
		if err := os.Remove(program); err != nil {
			return removed, fmt.Errorf("uninstall: %w", err)
		}
		removed = append(removed, program)
	}
	return removed, nil
}

// usesPlugin reports whether a configuration has a plugin of type vrouter.
func usesPlugin(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var c struct {
		Type    string // of a file with one plugin
		Plugins []struct{ Type string }
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return false, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	return c.Type == "vrouter" || slices.ContainsFunc(c.Plugins, func(p struct{ Type string }) bool { return p.Type == "vrouter" }), nil
}
