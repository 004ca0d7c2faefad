package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// An image alone is that of the release, with the revision as its tag.
func TestAnImageBuiltAloneEqualsThatOfTheRelease(t *testing.T) {
	s, err := findSource(t.Context(), "../..", "", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range supported {
		folder := filepath.Join(t.TempDir(), "folder")
		if _, err := runImages(t.Context(), options{root: "../..", images: folder, architectures: []string{arch}}); err != nil {
			t.Fatal(err)
		}
		for _, p := range products {
			tag, err := name.NewTag(p.name + ":" + s.revision)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := tarball.ImageFromPath(filepath.Join(folder, p.name+".image.tar"), &tag)
			if err != nil {
				t.Fatal(err)
			}
			released, err := tarball.ImageFromPath(artifact(t, p.name, "linux_"+arch+".image.tar"), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := alone.Digest()
			want, other := released.Digest()
			if err := errors.Join(err, other); err != nil || got != want {
				t.Errorf("the image of %s alone for %s is %v (%v), and that of the release %v", p.name, arch, got, err, want)
			}
		}
	}
	if _, err := build(t.Context(), options{images: "x", architectures: supported}); err == nil || !strings.Contains(err.Error(), "-images builds for one architecture") {
		t.Errorf("images for two architectures: %v", err)
	}
}

func TestAnImageHoldsTheProgram(t *testing.T) {
	for _, p := range products {
		for _, arch := range supported {
			image, err := tarball.ImageFromPath(artifact(t, p.name, "linux_"+arch+".image.tar"), nil)
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.Architecture != arch || config.OS != "linux" || fmt.Sprint(config.Config.Entrypoint) != "[/usr/bin/"+p.name+"]" || config.Created.IsZero() {
				t.Errorf("the image of %s for %s: %+v", p.name, arch, config)
			}
			layers, err := image.Layers()
			if err != nil || len(layers) != 1 {
				t.Fatalf("%d layers (%v), want one", len(layers), err)
			}
			content, err := layers[0].Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for r := tar.NewReader(content); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got[h.Name] = fmt.Sprintf("%o", h.Mode)
				if h.Typeflag == tar.TypeReg {
					d := sha256.New()
					if _, err := io.Copy(d, r); err != nil {
						t.Fatal(err)
					}
					got[h.Name] += fmt.Sprintf(" %x", d.Sum(nil))
				}
			}
			content.Close()
			if want := "755 " + digest(t, artifact(t, p.name, "linux_"+arch)); got["usr/bin/"+p.name] != want {
				t.Errorf("the program in the image of %s for %s: %q, want %q", p.name, arch, got["usr/bin/"+p.name], want)
			}
			files := 13
			if p.plugin != "" {
				files++
			}
			if p.helper != "" {
				files++
			}
			if !strings.HasPrefix(got["usr/share/doc/"+p.name+"/copyright"], "644 ") || got["tmp/"] != "1777" || len(got) != files {
				t.Errorf("the image of %s for %s has %v", p.name, arch, got)
			}
		}
	}
}

// daemon is a Docker daemon with its own containerd, namespaces and files.
type daemon struct {
	home string
	env  []string
}

// startDocker starts the daemon as the lab does; see lab/system/docker_enter.sh.
func startDocker(t *testing.T) daemon {
	t.Helper()
	needRoot(t)
	need(t, "dockerd", "docker", "containerd", "ctr", "runc", "unshare")
	enter, err := os.ReadFile("../../lab/system/docker_enter.sh")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("/run", "wt-dist-") // a short path, because sockets are below it
	if err != nil {
		t.Fatal(err)
	}
	d := daemon{home, append(os.Environ(), "DOCKER_CONFIG="+home+"/client", "DOCKER_HOST=", "DOCKER_CONTEXT=")}
	if err := errors.Join(os.Mkdir(home+"/bin", 0o700), os.Symlink("/bin/true", home+"/bin/modprobe"), os.WriteFile(home+"/daemon.json", []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	group := "/" + filepath.Base(home)
	cmd := exec.Command("unshare", "--mount", "--propagation", "slave", "--net", "--pid", "--fork", "--kill-child",
		"sh", "-c", string(enter), "docker_enter.sh", home,
		"sh", "-c", `mount --make-rshared /run && exec "$@"`, "sh", // as systemd does
		"dockerd", "--data-root", home+"/data", "--exec-root", home+"/exec", "--pidfile", home+"/dockerd.pid",
		"--host", "unix://"+home+"/docker.sock", "--config-file", home+"/daemon.json", "--log-level", "warn",
		"--bridge", "none", "--iptables=false", "--ip6tables=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", group)
	cmd.Env = append(os.Environ(), "PATH="+home+"/bin:"+os.Getenv("PATH"), "container=docker", "DOCKER_IGNORE_BR_NETFILTER_ERROR=1")
	log, err := os.Create(home + "/log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill() // and so, by --kill-child, the daemon and all processes of its PID namespace
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("dockerd does not end")
		}
		if t.Failed() {
			text, _ := os.ReadFile(home + "/log")
			t.Logf("dockerd: %s", text)
		}
		log.Close()
		removeCgroups(t, filepath.Base(home))
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	for range 300 {
		if _, err := d.try("docker", "version"); err == nil {
			return d
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("dockerd ended: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("dockerd does not answer")
	return d
}

func (d daemon) try(argv ...string) (string, error) {
	switch argv[0] {
	case "docker":
		argv = append([]string{"docker", "--host", "unix://" + d.home + "/docker.sock"}, argv[1:]...)
	case "ctr":
		argv = append([]string{"ctr", "--address", d.home + "/exec/containerd/containerd.sock", "--namespace", "wt"}, argv[1:]...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = d.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d daemon) run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := d.try(argv...)
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
	return out
}

// removeCgroups removes a control group of every hierarchy, its children first.
func removeCgroups(t *testing.T, name string) {
	one, _ := filepath.Glob("/sys/fs/cgroup/" + name)
	each, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, top := range append(one, each...) {
		var dirs []string
		filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			if err := os.Remove(dirs[i]); err != nil {
				t.Error(err)
			}
		}
	}
}

// load loads the image of a product and returns its name.
func (d daemon) load(t *testing.T, product string) (path, image string) {
	t.Helper()
	path = artifact(t, product, "linux_"+runtime.GOARCH+".image.tar")
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), product+"_"), "_linux_"+runtime.GOARCH+".image.tar")
	image = product + ":" + imageTag(version)
	if out := d.run(t, "docker", "load", "--input", path); !strings.Contains(out, image) {
		t.Errorf("docker load prints %q, want %s", out, image)
	}
	return path, image
}

func TestDockerAndContainerdTakeTheImages(t *testing.T) {
	d := startDocker(t)
	for _, p := range products {
		path, image := d.load(t, p.name)
		if out := d.run(t, "docker", "run", "--rm", "--network", "none", "--pull", "never", image, "version"); !strings.Contains(out, "0.") {
			t.Errorf("the program in %s prints %q, want its version", image, out)
		}
		d.run(t, "ctr", "images", "import", "--no-unpack", path)
		if out := d.run(t, "ctr", "images", "ls", "-q"); !strings.Contains(out, image) {
			t.Errorf("containerd has the images %q, want %s", out, image)
		}
	}
}

// The agent runs in a container, with the options of docs/packages.md except CAP_SYS_RESOURCE,
// which a test machine may lack. What it writes to the kernel outlives the container. The agent of the
// next container takes over, and removes everything.
func TestTheAgentRunsInAContainer(t *testing.T) {
	d := startDocker(t)
	_, image := d.load(t, "vrouter")
	if err := errors.Join(os.Mkdir(d.home+"/run/node", 0o755), os.WriteFile(d.home+"/run/node/node.yaml", []byte("node: a\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(d.home + "/dockerd.outer")
	if err != nil {
		t.Fatal(err)
	}
	pins := "/proc/" + strings.TrimSpace(string(pid)) + "/root/run/vrouter/a/bpf"
	start := func() {
		t.Helper()
		argv := []string{"docker", "run", "--detach", "--name", "agent", "--pull", "never", "--network", "host", "--pid", "host", "--cap-drop", "ALL"}
		for _, c := range []string{"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT", "DAC_OVERRIDE"} {
			argv = append(argv, "--cap-add", c)
		}
		for _, part := range []string{"seccomp", "apparmor", "systempaths"} {
			argv = append(argv, "--security-opt", part+"=unconfined")
		}
		argv = append(argv, "--volume", "/run:/run:rslave", "--volume", "/var/lib/vrouter:/var/lib/vrouter", "--volume", "/run/node:/etc/vrouter:ro",
			image, "agent", "--config", "/etc/vrouter/node.yaml")
		d.run(t, argv...)
		for range 100 {
			if _, err := d.try("docker", "exec", "agent", "vrouter", "status"); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("the agent does not answer: %s", d.run(t, "docker", "logs", "agent"))
	}
	vrouter := func(args ...string) string {
		t.Helper()
		return d.run(t, append([]string{"docker", "exec", "agent", "vrouter"}, args...)...)
	}
	start()
	vrouter("node", "add", "a", "--underlay", "192.0.2.1")
	vrouter("network", "create", "red", "--subnet", "10.0.0.0/24")
	vrouter("port", "add", "--network", "red", "--host")
	if out := vrouter("status"); strings.Contains(out, "the pins and all forwarding end") {
		t.Errorf("vrouter status: %s", out)
	}
	d.run(t, "docker", "rm", "--force", "agent")
	if left, err := os.ReadDir(pins); err != nil || len(left) == 0 {
		t.Errorf("without the container the pins are %v (%v), want those of the agent", left, err)
	}
	start()
	if out := vrouter("port", "list"); !strings.Contains(out, "10.0.0.2") {
		t.Errorf("the second agent has the ports %q, want 10.0.0.2", out)
	}
	vrouter("remove", "--config", "/etc/vrouter/node.yaml")
	if _, err := os.Stat(pins); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("vrouter remove left %s (%v)", pins, err)
	}
	d.run(t, "docker", "rm", "--force", "agent")
}

// An image can be built from a source archive. A release needs the time of its commit.
func TestOnlyAnImageIsBuiltWithoutGitHistory(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	tree := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "cmd", "vrouter"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := findSource(t.Context(), tree, "unknown", true)
	if err != nil || s.time.Unix() != 0 {
		t.Errorf("the time is %v (%v), want 1970", s.time, err)
	}
	if _, err := findSource(t.Context(), tree, "unknown", false); err == nil || !strings.Contains(err.Error(), "set SOURCE_DATE_EPOCH") {
		t.Errorf("a release without git history: %v", err)
	}
}
