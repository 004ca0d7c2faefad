package space

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const sysctls = "/proc/sys/net"

// readDeviceSysctls reads the sysctls of a device in the thread's namespace. The keys are
// paths below /proc/sys/net.
func readDeviceSysctls(device string) (map[string]string, error) {
	values := map[string]string{}
	for _, family := range []string{"ipv4", "ipv6", "mpls"} {
		for _, kind := range []string{"conf", "neigh"} {
			dir := filepath.Join(family, kind, device)
			files, err := os.ReadDir(filepath.Join(sysctls, dir))
			if errors.Is(err, os.ErrNotExist) {
				continue // the kernel lacks the family
			}
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				path := filepath.Join(dir, f.Name())
				if value, ok := readDeviceSysctl(path); ok {
					values[path] = value
				}
			}
		}
	}
	return values, nil
}

// readDeviceSysctl reads a sysctl. Some files cannot be read, such as an unset
// stable_secret.
func readDeviceSysctl(path string) (value string, ok bool) {
	text, err := os.ReadFile(filepath.Join(sysctls, path))
	return strings.TrimSpace(string(text)), err == nil
}

// writeDeviceSysctls sets the sysctls that have other values, and returns the errors by path.
func writeDeviceSysctls(values map[string]string) (failed map[string]error) {
	for range 2 { // one sysctl can change another: stable_secret sets addr_gen_mode
		failed = map[string]error{}
		for path, value := range values {
			if now, ok := readDeviceSysctl(path); ok && now == value {
				continue
			}
			if err := os.WriteFile(filepath.Join(sysctls, path), []byte(value), 0); err != nil {
				failed[path] = err
			}
		}
	}
	return failed
}

// isDefaultSysctl reports whether a new device has the value of a device's sysctl.
func isDefaultSysctl(path, value string) bool {
	dir, file := filepath.Split(path)
	now, ok := readDeviceSysctl(filepath.Join(filepath.Dir(filepath.Clean(dir)), "default", file))
	return ok && now == value
}
