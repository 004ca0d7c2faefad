package kerneltest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// archive returns the guest's first filesystem.
func (g Guest) archive(t *testing.T, kernel string) []byte {
	t.Helper()
	var a bytes.Buffer
	dirs := g.unpack(t, &a)
	var directory func(path string)
	directory = func(path string) { // the kernel makes no parents
		if path == "." || dirs[path] {
			return
		}
		dirs[path] = true
		directory(filepath.Dir(path))
		add(&a, path, unix.S_IFDIR|0o755, nil)
	}
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys", "tmp", "run", "modules"} {
		directory(dir)
	}
	add(&a, "dev/console", unix.S_IFCHR|0o600, nil)
	files := g.programs(t)
	files["init"] = "/proc/self/exe"
	if g.Program != "" {
		files[Program[1:]] = g.Program
	}
	for i, m := range g.Modules {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(kernel), "..", "lib/modules/*/kernel", m+".ko*"))
		if err != nil || len(found) > 1 {
			t.Fatalf("find module %s of kernel %s: %v, %v", m, kernel, found, err)
		}
		for _, path := range found {
			files[fmt.Sprintf("%s/%03d-%s", moduleDir[1:], i, filepath.Base(path))] = path
		}
	}
	for name, path := range files {
		data, err := os.ReadFile(path)
		must.Succeed(t, err)
		directory(filepath.Dir(name))
		add(&a, name, unix.S_IFREG|0o755, data)
	}
	add(&a, "TRAILER!!!", 0, nil)
	return a.Bytes()
}

// unpack adds the files of the image and the service of the test to an archive. It returns the paths of the image.
func (g Guest) unpack(t *testing.T, to *bytes.Buffer) map[string]bool {
	t.Helper()
	paths, files := map[string]bool{}, map[string][]byte{}
	if g.Image == "" {
		return paths
	}
	image, err := os.Open(g.Image)
	must.Succeed(t, err)
	defer image.Close()
	for r := tar.NewReader(image); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must.Succeed(t, err)
		path := filepath.Clean(h.Name)
		paths[path] = true
		switch mode := uint32(h.Mode); h.Typeflag {
		case tar.TypeDir:
			add(to, path, unix.S_IFDIR|mode, nil)
		case tar.TypeSymlink:
			add(to, path, unix.S_IFLNK|mode, []byte(h.Linkname))
		case tar.TypeReg:
			files[path], err = io.ReadAll(r)
			must.Succeed(t, err)
			add(to, path, unix.S_IFREG|mode, files[path])
		case tar.TypeLink:
			add(to, path, unix.S_IFREG|mode, files[filepath.Clean(h.Linkname)])
		}
	}
	parameter, _, _ := strings.Cut(g.Parameters, "=")
	add(to, service[1:], unix.S_IFREG|0o644, fmt.Appendf(nil, `[Unit]
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Environment=%s=1 PATH=/usr/sbin:/usr/bin
PassEnvironment=%s
ExecStart=/init -test.v -test.run=^%s$$
StandardInput=tty
StandardOutput=tty
TTYPath=/dev/ttyS0
`, serviceKey, parameter, t.Name()))
	for name, target := range map[string]string{
		"multi-user.target.wants/test.service": service,
		"serial-getty@ttyS0.service":           "/dev/null", // it would take the console from the test
	} {
		add(to, filepath.Join(filepath.Dir(service), name)[1:], unix.S_IFLNK|0o777, []byte(target))
	}
	return paths
}

// programs returns the paths in the guest of Programs and their libraries, and those on the host.
func (g Guest) programs(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range g.Programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is not installed; get it with: " + setup.Command(name))
		}
		files["bin/"+name] = path
		if name == "busybox" {
			files["bin/sh"] = path
		}
		libraries, _ := exec.Command("ldd", path).Output() // fails for a static program
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
			files[library[1:]] = library
		}
	}
	return files
}

// add appends a file to a cpio archive (newc), the format of an initramfs.
func add(to *bytes.Buffer, name string, mode uint32, data []byte) {
	var major, minor uint32
	if mode&unix.S_IFMT == unix.S_IFCHR {
		major, minor = 5, 1 // /dev/console
	}
	pad := func() { to.Write(make([]byte, -to.Len()&3)) }
	to.WriteString("070701")
	for _, field := range []uint32{0, mode, 0, 0, 1, 0, uint32(len(data)), 0, 0, major, minor, uint32(len(name) + 1), 0} {
		fmt.Fprintf(to, "%08x", field)
	}
	to.WriteString(name + "\x00")
	pad()
	to.Write(data)
	pad()
}
