package space

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const sysctls = "/proc/sys/net"

// changedSysctls reads the sysctls of a device in the thread's namespace that differ from those of
// a new device. The keys are paths below /proc/sys/net.
func changedSysctls(device string) map[string]string {
	values := map[string]string{}
	tree := os.DirFS(sysctls)
	dirs, _ := fs.Glob(tree, "*/*") // such as ipv6/conf; the pattern is well-formed
	for _, dir := range dirs {
		files, _ := fs.ReadDir(tree, path.Join(dir, device)) // most have no sysctls of devices
		for _, f := range files {
			at := path.Join(dir, device, f.Name())
			value, err := fs.ReadFile(tree, at) // fails for an unset stable_secret
			usual, _ := fs.ReadFile(tree, path.Join(dir, "default", f.Name()))
			if err == nil && !bytes.Equal(value, usual) {
				values[at] = strings.TrimSpace(string(value))
			}
		}
	}
	return values
}

// writeSysctl sets a sysctl if it has another value. Some settings have two files with different units, such as seconds
// and milliseconds. To write the value that a file already has would round the setting to the unit of this file.
func writeSysctl(at, value string) error {
	file := filepath.Join(sysctls, at)
	if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == value {
		return nil
	}
	return os.WriteFile(file, []byte(value), 0)
}
