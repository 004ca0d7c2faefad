package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/child"
	"windtunnel/lab/vm/kernel"
)

const (
	kvmDevice = "/dev/kvm"
	// answerFile has the answer until the machine boots again.
	answerFile = "/run/windtunnel.kvm"
	// trialTime is enough for a stock kernel to reach its first panic, also with nested
	// virtualisation. On bare metal it takes less than a second.
	trialTime = 6 * time.Second
)

// answer is the result of the trial of KVM.
type answer struct {
	Boot   string `json:"boot"`   // the kernel's boot id
	Kernel string `json:"kernel"` // the guest's
	Works  bool   `json:"works"`
	Why    string `json:"why,omitempty"`
}

// TryKVM returns an error if KVM cannot run a guest with a kernel. A device that can be
// opened is no proof: on some machines the guest never returns from it. So TryKVM boots a
// guest, once after each boot of this machine, and keeps the answer.
func TryKVM(ctx context.Context, k kernel.Kernel) error {
	if f, err := os.OpenFile(kvmDevice, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("KVM cannot be used: %w", err)
	} else if err := f.Close(); err != nil {
		return err
	}
	return once(ctx, answerFile, k.Release, func() (string, error) { return trial(ctx, k) })
}

// once calls try, unless a file has its answer since the machine's boot. Other callers wait
// meanwhile. Other users cannot open the file, and so cannot lock it.
func once(ctx context.Context, path, release string, try func() (why string, err error)) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keep what was found out of KVM: %w", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it the answer is asked for each time
	want := answer{Boot: strings.TrimSpace(string(boot)), Kernel: release}
	var found answer
	if json.NewDecoder(f).Decode(&found) == nil && found.Boot == want.Boot && found.Kernel == release && found.Boot != "" {
		return found.err()
	}
	if want.Why, err = try(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	want.Works = want.Why == ""
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	_, writing := f.WriteAt(append(text, '\n'), 0)
	if err := errors.Join(f.Truncate(int64(len(text)+1)), writing); err != nil {
		return fmt.Errorf("keep what was found out of KVM: %w", err)
	}
	return want.err()
}

func (a answer) err() error {
	if a.Works {
		return nil
	}
	return errors.New(a.Why)
}

// trial boots a kernel without a root file system by KVM. KVM works if the kernel reaches the
// panic that must follow, so that QEMU ends. Otherwise why has the reason.
func trial(ctx context.Context, k kernel.Kernel) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	cmd := child.Command(ctx, []string{Program, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256",
		"-kernel", k.Image, "-append", "console=ttyS0 panic=-1 reboot=t", "-serial", "stdio"})
	var console, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &console, &said
	if err = child.Bound(cmd); err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("KVM is there and does not work: a guest with kernel %s did not boot within %v", k.Release, trialTime), nil
	case errors.As(err, &exit):
		return fmt.Sprintf("KVM is there and does not work: %v: %s", err, strings.TrimSpace(said.String())), nil
	case err != nil:
		return "", fmt.Errorf("try KVM: %w", err)
	case !strings.Contains(console.String(), "Kernel panic"):
		return fmt.Sprintf("KVM is there and does not work: a guest with kernel %s ended early", k.Release), nil
	}
	return "", nil
}
