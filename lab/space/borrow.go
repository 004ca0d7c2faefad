package space

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
)

// loan describes a device of the host that is in a namespace of the lab, with
// everything that the kernel drops when a device changes its namespace. It is stored
// in the namespace's home, so that another process can return the device.
type loan struct {
	Host      uint32 // inode of the host's network namespace
	Device    string
	MAC       net.HardwareAddr
	MTU       int
	Up        bool
	Addresses []netlink.Addr    // in the order in which they are added
	Sysctls   map[string]string // files below /proc/sys/net that differ from those of a new device
	Features  map[string]bool   // requested offload features, by the kernel's names
}

const loanFile = "device.json"

// Borrow moves a device of the process's namespace into s. Delete returns the device,
// with its settings. The device is down afterwards. Borrow refuses a device with other dependents
// than addresses (see Unreturnable).
func (s *Space) Borrow(device string) error {
	host, err := Open("")
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Link(device)
	if err != nil {
		return err
	}
	why, err := host.Unreturnable(l)
	if err != nil {
		return err
	}
	if len(why) > 0 {
		return fmt.Errorf("move device %s to %s: %s", device, s, why[0])
	}
	b, err := host.describeLoan(l)
	if err != nil {
		return fmt.Errorf("read the settings of device %s: %w", device, err)
	}
	if err := b.save(s.Name); err != nil {
		return err
	}
	if err := host.Links.LinkSetNsFd(l, int(s.NS)); err != nil {
		return errors.Join(fmt.Errorf("move device %s to %s: %w", device, s, err), forgetLoan(s.Name), DeleteHome(s.Name))
	}
	return nil
}

func (s *Space) describeLoan(l netlink.Link) (b loan, err error) {
	a := l.Attrs()
	b = loan{Device: a.Name, MAC: a.HardwareAddr, MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	if b.Host, err = s.Inode(); err != nil {
		return b, err
	}
	features, err := s.Features(a.Name)
	if err != nil {
		return b, err
	}
	b.Features = wanted(features)
	b.Sysctls = changedSysctls(a.Name)
	b.Addresses, err = s.addressesOf(l)
	return b, err
}

func (b loan) save(name string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(Home(name), 0o700); err != nil {
		return fmt.Errorf("make the home of namespace %s: %w", name, err)
	}
	file := filepath.Join(Home(name), loanFile)
	if err = os.WriteFile(file+".new", text, 0o600); err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("record the device in namespace %s: %w", name, err)
	}
	return nil
}

// loanOf reads the loan of a namespace. ok is false if there is none.
func loanOf(name string) (b loan, ok bool, err error) {
	file := filepath.Join(Home(name), loanFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return b, false, nil
	}
	if err == nil {
		in := json.NewDecoder(bytes.NewReader(text))
		in.DisallowUnknownFields() // another version of the lab wrote it
		err = in.Decode(&b)
	}
	if err != nil {
		return b, false, fmt.Errorf("read which device is in namespace %s: %w; the file %s has the name and the settings of the device: return the device by hand (`ip -n %s link set DEVICE netns 1`), restore its settings, and delete the file", name, err, file, name)
	}
	return b, true, nil
}

// forgetLoan removes the record of a namespace's loan.
func forgetLoan(name string) error {
	if err := os.Remove(filepath.Join(Home(name), loanFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// lentElsewhere reports whether a namespace has a device of another host namespace
// than the process's. Only a process in that host namespace can return the device.
func lentElsewhere(name string) (bool, error) {
	b, ok, err := loanOf(name)
	if err != nil || !ok {
		return false, err
	}
	host, err := Open("")
	if err != nil {
		return false, err
	}
	defer host.Close()
	own, err := host.Inode()
	return own != b.Host, err
}
