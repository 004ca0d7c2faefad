package space

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Sysctl sets a sysctl of the namespace, such as "net.ipv4.ip_forward". A sysctl that
// this kernel lacks is no error; it is recorded as absent.
func (s *Space) Sysctl(key, value string) error {
	path := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
	return s.sysctlFile(key, path, value)
}

// DeviceSysctl sets a sysctl of one device. The device's name may contain dots.
// family is "ipv4" or "ipv6".
func (s *Space) DeviceSysctl(family, device, key, value string) error {
	path := filepath.Join("/proc/sys/net", family, "conf", device, key)
	return s.sysctlFile(fmt.Sprintf("net.%s.conf.%s.%s", family, device, key), path, value)
}

func (s *Space) sysctlFile(key, path, value string) error {
	err := s.Do(func() error { return os.WriteFile(path, []byte(value), 0) })
	if errors.Is(err, fs.ErrNotExist) {
		s.note(&s.record.Sysctls, key, "absent")
		return nil
	}
	if err != nil {
		return fmt.Errorf("set sysctl %s=%s in %s: %w", key, value, s, err)
	}
	s.note(&s.record.Sysctls, key, value)
	return nil
}

// readSysctls records the values of sysctls in the namespace. It omits sysctls that
// the namespace does not have.
func (s *Space) readSysctls(keys []string) error {
	for _, key := range keys {
		var value []byte
		err := s.Do(func() (err error) {
			value, err = os.ReadFile("/proc/sys/" + strings.ReplaceAll(key, ".", "/"))
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read sysctl %s in %s: %w", key, s, err)
		}
		s.note(&s.record.Sysctls, key, strings.Join(strings.Fields(string(value)), " "))
	}
	return nil
}

// Sysfs writes a file of the namespace's /sys/class/net, such as
// "eth0/queues/rx-0/rps_cpus".
func (s *Space) Sysfs(path, value string) error {
	fd, err := s.openSysfs(path, unix.O_WRONLY)
	if err != nil {
		return fmt.Errorf("set /sys/class/net/%s in %s: %w", path, s, err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return fmt.Errorf("set /sys/class/net/%s to %s in %s: %w", path, value, s, err)
	}
	s.note(&s.record.Others, path, value)
	return nil
}

// ReadSysfs reads a file of the namespace's /sys/class/net.
func (s *Space) ReadSysfs(path string) (string, error) {
	fd, err := s.openSysfs(path, unix.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("read /sys/class/net/%s in %s: %w", path, s, err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "", fmt.Errorf("read /sys/class/net/%s in %s: %w", path, s, err)
	}
	return strings.TrimSpace(string(buf[:n])), nil
}

// openSysfs opens a file through a sysfs instance made inside the namespace: a sysfs
// shows the devices of the namespace that mounted it. The mount has no mount point,
// so the host does not see it (fsmount(2), Linux 5.2).
func (s *Space) openSysfs(path string, flags int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sysfs < 0 {
		if err := s.Do(s.mountSysfs); err != nil {
			return -1, err
		}
	}
	return unix.Openat(s.sysfs, filepath.Join("class/net", path), flags|unix.O_CLOEXEC, 0)
}

func (s *Space) mountSysfs() error {
	fsfd, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("fsopen sysfs (needs Linux 5.2 and CAP_SYS_ADMIN): %w", err)
	}
	defer unix.Close(fsfd)
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return fmt.Errorf("make a sysfs instance: %w", err)
	}
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount a sysfs instance: %w", err)
	}
	s.sysfs = fd
	return nil
}

// Offloads switches offload features of a device by ethtool's kernel names
// ("tx-tcp-segmentation"). Features that the device lacks are skipped and recorded as
// absent.
func (s *Space) Offloads(device string, want map[string]bool) error {
	has, err := s.Features(device)
	if err != nil {
		return err
	}
	change := map[string]bool{}
	for name, on := range want {
		if _, ok := has[name]; ok {
			change[name] = on
		} else {
			s.note(&s.record.Offloads, device+" "+name, "absent")
		}
	}
	if err := s.RestoreFeatures(device, change); err != nil {
		return err
	}
	now, err := s.Features(device)
	if err != nil {
		return err
	}
	for name, on := range change {
		if now[name].On != on {
			return fmt.Errorf("set offloads of %s in %s: the device keeps %s %s", device, s, name, OnOff(now[name].On))
		}
		s.note(&s.record.Offloads, device+" "+name, OnOff(on))
	}
	return nil
}

// Feature is the state of an offload feature of a device.
type Feature struct {
	On     bool
	Wanted bool // requested by the user; the kernel turns it on if it can
	Fixed  bool // the driver does not change it
}

// Features returns a device's offload features by the kernel's names. It reads the features
// until two consecutive results are equal, because a result can be wrong: safchain/ethtool passes
// addresses of variables to the kernel as integers, and Go can move the variables during the
// call. Pull request 139 of safchain/ethtool fixes this. With a release that contains it, read once.
func (s *Space) Features(device string) (map[string]Feature, error) {
	const attempts = 10
	var last map[string]Feature
	for range attempts {
		now, err := s.readFeatures(device)
		if err != nil {
			return nil, err
		}
		if last != nil && maps.Equal(now, last) {
			return now, nil
		}
		last = now
	}
	return nil, fmt.Errorf("read offloads of %s in %s: they changed between all of %d readings; stop other programs that change the device", device, s, attempts)
}

func (s *Space) readFeatures(device string) (map[string]Feature, error) {
	features := map[string]Feature{}
	err := s.ethtool(func(e *ethtool.Ethtool) error {
		has, err := e.FeaturesWithState(device)
		for name, f := range has {
			features[name] = Feature{On: f.Active, Wanted: f.Requested, Fixed: f.NeverChanged || !f.Available}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s in %s: %w", device, s, err)
	}
	return features, nil
}

// wanted keeps the features that can change, with their requested states.
func wanted(features map[string]Feature) map[string]bool {
	states := map[string]bool{}
	for name, f := range features {
		if !f.Fixed {
			states[name] = f.Wanted
		}
	}
	return states
}

// RestoreFeatures sets the requested states of features. It changes no other feature. A
// feature can stay off although it is requested on.
func (s *Space) RestoreFeatures(device string, states map[string]bool) error {
	const attempts = 3 // the kernel can receive a wrong request; see Features
	for attempt := 0; ; attempt++ {
		now, err := s.Features(device)
		if err != nil {
			return err
		}
		change := map[string]bool{}
		for name, on := range states {
			if f := now[name]; f.Wanted != on && !f.Fixed {
				change[name] = on
			}
		}
		if len(change) == 0 {
			return nil
		}
		if attempt == attempts {
			return fmt.Errorf("set offloads of %s in %s: the device did not accept %v in %d attempts; set them by hand: `ethtool -K %s FEATURE on|off`", device, s, change, attempts, device)
		}
		err = s.ethtool(func(e *ethtool.Ethtool) error { return e.Change(device, change) })
		if err != nil {
			return fmt.Errorf("request offloads of %s in %s: %w", device, s, err)
		}
	}
}

// OffloadsOn lists a device's offload features that are on, by the kernel's names.
func (s *Space) OffloadsOn(device string) (on []string, err error) {
	features, err := s.Features(device)
	for name, f := range features {
		if f.On {
			on = append(on, name)
		}
	}
	return on, err
}

// ethtool runs f with an ethtool socket of the namespace.
func (s *Space) ethtool(f func(*ethtool.Ethtool) error) error {
	return s.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return f(e)
	})
}

// OnOff returns the word for the state of a feature.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
