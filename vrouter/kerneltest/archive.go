package kerneltest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/u-root/u-root/pkg/cpio"
	"github.com/u-root/u-root/pkg/ldd"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// archive returns the guest's first filesystem.
func (g Guest) archive(t *testing.T, kernel string) []byte {
	t.Helper()
	records := g.unpack(t)
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys", "tmp", "run", "modules"} {
		records = append(records, cpio.Directory(dir, 0o755))
	}
	records = append(records, cpio.CharDev("dev/console", 0o600, 5, 1))
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
	var more []cpio.Record
	for name, path := range files {
		more = append(more, regular(name, 0o755, must.Get(os.ReadFile(path))(t)))
	}
	var a bytes.Buffer
	w := cpio.NewDedupWriter(cpio.Newc.Writer(&a))
	must.Succeed(t, errors.Join(cpio.WriteRecords(w, records), cpio.WriteRecordsAndDirs(w, more), cpio.WriteTrailer(w)))
	return a.Bytes()
}

func regular(path string, mode uint64, content []byte) cpio.Record {
	return cpio.StaticRecord(content, cpio.Info{Name: path, Mode: unix.S_IFREG | mode})
}

// unpack returns the files of the image and the service of the test.
func (g Guest) unpack(t *testing.T) (all []cpio.Record) {
	t.Helper()
	if g.Image == "" {
		return nil
	}
	files := map[string][]byte{}
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
		switch mode := uint64(h.Mode); h.Typeflag {
		case tar.TypeDir:
			all = append(all, cpio.Directory(path, mode))
		case tar.TypeSymlink:
			all = append(all, cpio.Symlink(path, h.Linkname))
		case tar.TypeReg:
			files[path] = must.Get(io.ReadAll(r))(t)
			all = append(all, regular(path, mode, files[path]))
		case tar.TypeLink:
			all = append(all, regular(path, mode, files[filepath.Clean(h.Linkname)]))
		}
	}
	parameter, _, _ := strings.Cut(g.Parameters, "=")
	all = append(all, regular(service[1:], 0o644, fmt.Appendf(nil, `[Unit]
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Environment=%s=1 PATH=/usr/sbin:/usr/bin
PassEnvironment=%s
ExecStart=/init -test.v -test.run=^%s$$
StandardInput=tty
StandardOutput=tty
TTYPath=/dev/ttyS0
`, serviceKey, parameter, t.Name())))
	for name, target := range map[string]string{
		"multi-user.target.wants/test.service": service,
		"serial-getty@ttyS0.service":           "/dev/null", // it would take the console from the test
	} {
		all = append(all, cpio.Symlink(filepath.Join(filepath.Dir(service), name)[1:], target))
	}
	return all
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
		files["bin/"+filepath.Base(name)] = path
		switch name {
		case "busybox":
			files["bin/sh"] = path
		case "iptables": // it loads a library for each match and target
			for _, plugin := range must.Get(filepath.Glob("/usr/lib/*/xtables/*.so"))(t) {
				files[plugin[1:]] = plugin
			}
		}
		for _, library := range must.Get(ldd.List(path))(t) {
			files[library[1:]] = library
		}
	}
	return files
}
