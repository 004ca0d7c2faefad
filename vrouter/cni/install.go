package cni

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"windtunnel/vrouter/model"
)

// Folders of plugins and configurations where runtimes look.
const (
	DefaultBinaries = "/opt/cni/bin"
	DefaultConfigs  = "/etc/cni/net.d"
)

// Portmap is CNI's plugin portmap as vrouter's image has it, beside this program. Another one of the node may lack
// the key masqAll, or belong to somebody else.
const Portmap = "vrouter-portmap"

// InstallOptions of Install.
type InstallOptions struct {
	Network  string // virtual network
	Name     string // of the configuration; default: the network's
	Binaries string // folder of CNI plugins
	Configs  string // folder of CNI configurations
	Chain    []string
	Ranges   []model.Range // from which addresses are allocated; default: the network's
	Node     string
	Socket   string // absolute path of the agent's socket; default: the node's socket
}

// Install copies the plugin, and Portmap if the chain has it, to the folder of plugins, and writes a
// configuration list. The plugin is vrouter-cni if it is beside this program, else this program. Each file is
// written atomically. If the folder has a link to the plugin, as a package installs it, Install keeps the link:
// it needs no new copy after an upgrade.
func Install(o InstallOptions) (written []string, err error) {
	path, err := o.configPath()
	if err != nil {
		return nil, err
	}
	o.Name = cmp.Or(o.Name, o.Network)
	plugin, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if alone := filepath.Join(filepath.Dir(plugin), "vrouter-cni"); isFile(alone) {
		plugin = alone
	}
	programs := [][2]string{{plugin, "vrouter"}}
	if slices.Contains(o.Chain, Portmap) {
		programs = append(programs, [2]string{filepath.Join(filepath.Dir(plugin), Portmap), Portmap})
	}
	for _, p := range programs {
		from, to := p[0], filepath.Join(o.Binaries, p[1])
		if sameFile(from, to) {
			continue
		}
		if err := copyProgram(from, to); err != nil {
			return written, err
		}
		written = append(written, to)
	}
	list, err := conflist(o)
	if err != nil {
		return written, err
	}
	if err := writeFile(path, 0o644, func(w io.Writer) error { _, err := w.Write(list); return err }); err != nil {
		return written, err
	}
	return append(written, path), nil
}

// configPath is the path of the configuration list.
func (o InstallOptions) configPath() (string, error) {
	name := cmp.Or(o.Name, o.Network)
	if strings.ContainsAny(name, "/ ") || name == "" {
		return "", fmt.Errorf("%q is not a valid name of a configuration: it must not be empty or contain / or spaces", name)
	}
	return filepath.Join(o.Configs, "10-"+name+".conflist"), nil
}

func isFile(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular()
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read the plugin: %w", err)
	}
	defer in.Close()
	return writeFile(to, 0o755, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
}

// conflist makes the configuration list: vrouter, then the plugins of the chain.
func conflist(o InstallOptions) ([]byte, error) {
	plugin := map[string]any{
		"type": "vrouter", "network": o.Network,
		"capabilities": map[string]bool{"ips": true, "mac": true, "bandwidth": true},
	}
	if slices.Contains(o.Chain, "portmap") || slices.Contains(o.Chain, Portmap) {
		plugin["capabilities"] = map[string]bool{"ips": true, "mac": true, "bandwidth": true, "portMappings": true}
	}
	if len(o.Ranges) > 0 {
		plugin["ranges"] = o.Ranges
	}
	if o.Node != "" {
		plugin["node"] = o.Node
	}
	if o.Socket != "" {
		plugin["socket"] = o.Socket
	}
	plugins := []map[string]any{plugin}
	for _, name := range o.Chain {
		if name == "bandwidth" {
			return nil, errors.New("remove bandwidth from the chain: vrouter limits the bandwidth itself, and its packets bypass the queues of that plugin")
		}
		next := map[string]any{"type": name}
		if name == "portmap" || name == Portmap {
			// masqAll replaces a client's address with the node's. Workloads have
			// no route to clients outside the overlay.
			next["capabilities"], next["masqAll"] = map[string]bool{"portMappings": true}, true
		}
		if slices.ContainsFunc(plugins, func(p map[string]any) bool { return p["type"] == name }) {
			return nil, fmt.Errorf("plugin %q is in the chain twice", name)
		}
		plugins = append(plugins, next)
	}
	// containerd 1.6 and 1.7 refuse cniVersion 1.1.0 and ignore cniVersions.
	// Newer runtimes use the highest version in cniVersions.
	text, err := json.MarshalIndent(map[string]any{"cniVersion": "1.0.0", "cniVersions": []string{"0.4.0", "1.0.0", "1.1.0"}, "name": o.Name, "plugins": plugins}, "", "  ")
	return append(text, '\n'), err
}

// writeFile writes a file atomically: a reader sees the old file or the new
// file.
func writeFile(path string, mode os.FileMode, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.CloseAtomicallyReplace()
}
