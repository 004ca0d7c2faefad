package space

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
)

func TestTheErrorOfATakenLockNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TakeLock(path)
	must.Succeed(t, err)
	_, err = TakeLock(path)
	must.Fail(t, err, fmt.Sprintf("process %d", os.Getpid()))
	must.Succeed(t, first.Unlock())
	second := must.Get(TakeLock(path))(t)
	must.Succeed(t, second.Unlock())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is still there: %v", err)
	}
}

// Any user can make a link in a directory such as /tmp.
func TestTheLockDoesNotFollowALink(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "lock"), filepath.Join(dir, "other")
	must.Succeed(t, errors.Join(os.WriteFile(other, []byte("text"), 0o600), os.Symlink(other, path)))
	if l, err := TakeLock(path); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("lock %v, error %v; want ELOOP", l, err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "text" {
		t.Errorf("the file at the link has %q (%v)", text, err)
	}
}

// lab clean removes lock files with the program. Then another measurement can have a lock
// file with the same name.
func TestUnlockRemovesOnlyItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TakeLock(path)
	if err == nil {
		err = os.Remove(path)
	}
	must.Succeed(t, err)
	second := must.Get(TakeLock(path))(t)
	must.Succeed(t, first.Unlock())
	if l, err := TakeLock(path); err == nil {
		t.Errorf("a third lock beside the second: %v", l)
	}
	must.Succeed(t, second.Unlock())
}

func TestALockIsFreeOnceItsHolderWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.Command("flock", path, "sleep", "60")
	if err := holder.Start(); err != nil {
		t.Skip("flock(1) is not installed: " + err.Error())
	}
	// The test calls flock(2) itself: TakeLock would remove the file that flock(1) may have just opened.
	file := must.Get(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
	defer file.Close()
	must.EventuallyTrue(t, "flock(1) has the lock", func() bool {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		return err != nil
	})
	if _, err := TakeLock(path); err == nil {
		t.Error("a lock that another process holds was given")
	}
	// flock's child holds the lock too: end both.
	kids, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", holder.Process.Pid, holder.Process.Pid))
	for _, k := range strings.Fields(string(kids)) {
		var pid int
		fmt.Sscan(k, &pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
	holder.Process.Kill()
	holder.Wait()
	must.Eventually(t, "the lock is free", func() error {
		l, err := TakeLock(path)
		if err == nil {
			l.Unlock()
		}
		return err
	})
}
