package probe

import (
	"context"
	"errors"
	"os/exec"

	"windtunnel/lab/vm"
	"windtunnel/lab/vm/kernel"
)

func findQEMU(*bench, *Facts) (string, error) {
	path, err := exec.LookPath(vm.Program)
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New(vm.Program + " is not installed")
	}
	return path, err
}

func findGuestKernel(*bench, *Facts) (string, error) {
	k, err := kernel.Find()
	if errors.Is(err, kernel.ErrNone) {
		err = errors.New("none was found")
	}
	return k.Release, err
}

// tryKVM boots a guest once after each boot of the machine, if QEMU and a kernel are
// installed. If KVM does not work, this takes some seconds.
func tryKVM(*bench, *Facts) (string, error) {
	if _, err := exec.LookPath(vm.Program); err != nil {
		return "", errors.New("QEMU is not installed")
	}
	k, err := kernel.Find()
	if err != nil {
		return "", errors.New("there is no kernel to boot a guest with")
	}
	return "", vm.TryKVM(context.Background(), k)
}
