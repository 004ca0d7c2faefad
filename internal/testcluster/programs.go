package testcluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// KubernetesVersion is the version that the test cluster runs. staging is that of its libraries.
const (
	KubernetesVersion = "v1.31.4"
	staging           = "v0.31.4"
	plugins           = "v1.9.1" // of the CNI project
	// The CNI project's last version with the plugin of flannel, and flannel's daemon.
	flannelPlugin = "github.com/containernetworking/plugins/plugins/meta/flannel@v0.9.1"
	flannelDaemon = "github.com/flannel-io/flannel@v0.26.7"
)

// stagingModules are the modules that k8s.io/kubernetes replaces by folders of its own.
var stagingModules = strings.Fields(`api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
	cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client csi-translation-lib
	dynamic-resource-allocation endpointslice kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet
	metrics mount-utils pod-security-admission sample-apiserver sample-cli-plugin sample-controller`)

var (
	components  = []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"}
	cniPrograms = []string{"main/bridge", "main/loopback", "ipam/host-local"}
)

// programs returns the folder with the programs of a cluster. It builds them once, in
// a module in the user's cache: about 6 minutes and 4 GB of build cache.
func programs(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must.Succeed(t, err)
	folder := filepath.Join(cache, "windtunnel", "kubernetes-"+KubernetesVersion)
	bin := filepath.Join(folder, "bin")
	if _, err := os.Stat(filepath.Join(bin, "complete")); err == nil && exists(filepath.Join(bin, "kube-scheduler")) {
		return bin
	}
	must.Succeed(t, os.MkdirAll(bin, 0o755))
	var mod strings.Builder
	fmt.Fprintf(&mod, "module cluster\n\ngo 1.23\n\nrequire (\n\tk8s.io/kubernetes %s\n\tgithub.com/containernetworking/plugins %s\n)\n\nreplace (\n", KubernetesVersion, plugins)
	for _, m := range stagingModules {
		fmt.Fprintf(&mod, "\tk8s.io/%s => k8s.io/%[1]s %s\n", m, staging)
	}
	mod.WriteString(")\n")
	must.Succeed(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod.String()), 0o644))
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion, "-o", bin + "/"}
	for _, c := range components {
		args = append(args, "k8s.io/kubernetes/cmd/"+c)
	}
	for _, c := range cniPrograms {
		args = append(args, "github.com/containernetworking/plugins/plugins/"+c)
	}
	build(t, folder, "CGO_ENABLED=0", args...)
	// The daemon's backend udp is C. Both programs have the name flannel.
	build(t, folder, "CGO_ENABLED=1", "install", "-trimpath", "-ldflags", "-s -w -extldflags -static", flannelDaemon)
	must.Succeed(t, os.Rename(filepath.Join(bin, "flannel"), filepath.Join(bin, "flanneld")))
	build(t, folder, "CGO_ENABLED=0", "install", "-trimpath", "-ldflags", "-s -w", flannelPlugin)
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "complete"), nil, 0o644))
	return bin
}

// build runs the go program in a module in the user's cache. Programs that it installs are in the
// folder bin there.
func build(t *testing.T, folder, setting string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOBIN="+filepath.Join(folder, "bin"), setting)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the programs of a cluster: %v\n%s", err, last(out))
	}
}

// compile builds a program of the cluster's Kubernetes version, unless it is already built.
func compile(t *testing.T, folder, path, verb string, args ...string) {
	t.Helper()
	if !exists(path) {
		build(t, folder, "CGO_ENABLED=0", append([]string{verb, "-trimpath", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion, "-o", path}, args...)...)
	}
}

// SandboxImage is the image of the containers that keep the namespaces of pods, and of
// flannel's pods. It has the programs windtunnel and flanneld.
const SandboxImage = "wt.test/sandbox:test"

// Tags lists the tags of an image in a docker archive.
func Tags(t *testing.T, archive string) []string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatalf("%v; make the image by: make image", err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		must.Succeed(t, err)
		if h.Name != "manifest.json" {
			continue
		}
		var manifest []struct{ RepoTags []string }
		must.Succeed(t, json.NewDecoder(r).Decode(&manifest))
		return manifest[0].RepoTags
	}
}

// writeSandbox writes a docker archive of the sandbox image.
func writeSandbox(t *testing.T, programs []string, archive string) {
	t.Helper()
	files := []file{{"bin/", nil}, {"tmp/", nil}, {"run/", nil}, {"etc/", nil}}
	for _, p := range programs {
		files = append(files, copyOf(t, p, "bin/"+filepath.Base(p)))
	}
	writeImage(t, archive, SandboxImage, []string{"/bin/windtunnel", "pod"}, nil, files)
}

// writeImage writes a docker archive of an image.
func writeImage(t *testing.T, archive, tag string, entrypoint, arguments []string, files []file) {
	t.Helper()
	layer := tarOf(t, files...)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": entrypoint, "Cmd": arguments, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	must.Succeed(t, err)
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(archive, tarOf(t, file{"manifest.json", manifest}, file{"config.json", config}, file{"layer.tar", layer}), 0o644))
}

// copyOf returns an entry with the text of a file of this machine.
func copyOf(t *testing.T, path, name string) file {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	return file{name, text}
}

// file is an entry of an archive; a folder if its name ends with "/".
type file struct {
	name string
	text []byte
}

func tarOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		must.Succeed(t, w.WriteHeader(h))
		_, err := w.Write(f.text)
		must.Succeed(t, err)
	}
	must.Succeed(t, w.Close())
	return b.Bytes()
}
