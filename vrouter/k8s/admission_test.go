package k8s

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// With the example policy of docs/fleet.md, a user with the right to change namespaces, but not nodes, cannot
// change their network.
func TestTheExampleLimitsWhoChoosesANetwork(t *testing.T) {
	k := testcluster.Start(t, testcluster.Options{ServerOnly: true})
	text := must.Get(os.ReadFile("../../docs/fleet.md"))(t)
	policy := regexp.MustCompile("(?s)```yaml\n([^`]*kind: ValidatingAdmissionPolicy\n.*?)```").FindSubmatch(text)
	if policy == nil {
		t.Fatal("docs/fleet.md has no policy")
	}
	must := func(stdin string, args ...string) {
		t.Helper()
		if said, err := k.Kubectl(stdin, args...); err != nil {
			t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, said)
		}
	}
	must("", "create", "namespace", "web")
	must("", "create", "clusterrole", "limited", "--verb=get,update,patch", "--resource=namespaces")
	must("", "create", "clusterrolebinding", "limited", "--clusterrole=limited", "--user=limited")
	must(string(policy[1]), "create", "-f", "-")
	limited := "--kubeconfig=" + k.Path("limited")
	k.Await("the policy is in force", func() bool { // --dry-run: a stored value would not be a change later
		said, err := k.Kubectl("", limited, "annotate", "--dry-run=server", "namespace", "web", NetworkAnnotation+"=red")
		return err != nil && strings.Contains(said, "only an administrator may choose the network")
	})
	must("", limited, "label", "namespace", "web", "color=red")
	must("", "annotate", "--overwrite", "namespace", "web", NetworkAnnotation+"=blue")
	must("", limited, "label", "namespace", "web", "color=blue", "--overwrite")
	if said, err := k.Kubectl("", limited, "annotate", "namespace", "web", NetworkAnnotation+"-"); err == nil {
		t.Errorf("a limited user removes the annotation: %s", said)
	}
}
