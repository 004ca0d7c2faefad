package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Beside returns the path of a program that is built together with the running
// one: in the same folder, else on PATH.
func Beside(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the %s program is neither in the directory of this program nor on PATH: build it with `make build`", name)
	}
	return path, nil
}
