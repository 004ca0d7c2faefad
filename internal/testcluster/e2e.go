package testcluster

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"windtunnel/internal/must"
)

// hostPrograms are the programs of this machine that upstream's cases start in pods.
var hostPrograms = strings.Fields("sh curl wget nc ss cat date dd echo grep hostname seq sleep sort tail timeout")

// writeE2E builds e2e.test, upstream's test program, with ginkgo, which runs it in parallel, and
// the programs of its image. It does so once: about 10 minutes. It then writes the image.
func (k *Cluster) writeE2E() {
	t, folder := k.T, filepath.Dir(k.Bin)
	compile(t, folder, filepath.Join(k.Bin, "e2e.test"), "test", "-c", "k8s.io/kubernetes/test/e2e")
	compile(t, folder, filepath.Join(k.Bin, "ginkgo"), "build", "github.com/onsi/ginkgo/v2/ginkgo")
	compile(t, folder, filepath.Join(k.Bin, "agnhost"), "build", "k8s.io/kubernetes/test/images/agnhost")

	list, err := k.Command("e2e.test", "--list-images").Output()
	must.Succeed(t, err)
	tag := regexp.MustCompile(`(?m)^\S+/e2e-test-images/agnhost:\S+$`).FindString(string(list))
	if tag == "" {
		t.Fatalf("e2e.test does not list the image agnhost:\n%s", list)
	}
	files := []file{{"tmp/", nil}, {"uploads/", nil}, {"etc/", nil}, {"bin/", nil}, copyOf(t, filepath.Join(k.Bin, "agnhost"), "agnhost"),
		copyOf(t, which(k, "busybox"), "bin/nslookup")}
	libraries := map[string]bool{}
	for _, p := range hostPrograms {
		path := which(k, p)
		files = append(files, copyOf(t, path, "bin/"+p))
		out, err := exec.Command("ldd", path).Output()
		must.Succeed(t, err)
		for _, l := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
			if !libraries[l] {
				libraries[l] = true
				files = append(files, copyOf(t, l, l[1:]))
			}
		}
	}
	writeImage(t, k.Path("agnhost.image"), tag, []string{"/agnhost"}, []string{"pause"}, files)
}

func which(k *Cluster, program string) string {
	k.T.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		k.T.Skipf("%s is not installed; get it with: make setup", program)
	}
	return path
}
