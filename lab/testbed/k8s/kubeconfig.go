package k8s

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"windtunnel/lab/testbed/remote"
)

// access is the way to a cluster.
type access struct {
	origin
	kubectl []string // command line of kubectl, without its command
	server  string   // URL of the API server
	plugin  string   // command of the credential plugin; "" if there is none
}

// origin is the place of the settings of a connection. The zero value is the service account
// of a pod in which the engine runs.
type origin struct {
	files   string // absolute paths, separated as in $KUBECONFIG
	context string
}

func (o origin) String() string {
	if o == (origin{}) {
		return "service account of this pod"
	}
	return fmt.Sprintf("context %s of %s", o.context, o.files)
}

// readConfig reads the kubeconfig by kubectl. Options with the returned origin lead to the same
// cluster later.
func readConfig(ctx context.Context, o Options) (access, error) {
	a := access{kubectl: []string{"kubectl"}}
	files := []string{o.Kubeconfig}
	if several := filepath.SplitList(o.Kubeconfig); len(several) > 1 && !exists(o.Kubeconfig) {
		a.kubectl, files = []string{"env", "KUBECONFIG=" + o.Kubeconfig, "kubectl"}, several
	} else if o.Kubeconfig != "" {
		if _, err := os.Stat(o.Kubeconfig); err != nil { // kubectl takes a missing file as an empty one
			return a, unread(err)
		}
		a.kubectl = append(a.kubectl, "--kubeconfig", o.Kubeconfig)
	} else if files = filepath.SplitList(os.Getenv("KUBECONFIG")); len(files) == 0 {
		files = []string{filepath.Join(os.Getenv("HOME"), ".kube/config")}
	}
	if o.Context != "" {
		a.kubectl = append(a.kubectl, "--context", o.Context)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, kubectlTime, fmt.Errorf("kubectl did not answer within %v; a credential plugin of the kubeconfig can hang", kubectlTime))
	defer cancel()
	out, said, err := remote.Run(ctx, nil, append(a.kubectl, "config", "view", "--minify", "-o", "json")...)
	if strings.Contains(said, "current-context must exist") {
		return a, a.inPod()
	}
	if err != nil {
		if said != "" {
			err = plain(strings.TrimPrefix(said, "error: "))
		}
		return a, unread(err)
	}
	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct {
			User struct{ Exec struct{ Command string } }
		}
		Context string `json:"current-context"`
	}
	if err := json.Unmarshal([]byte(out), &config); err != nil {
		return a, fmt.Errorf("read the kubeconfig: the answer of kubectl: %w", err)
	}
	if len(config.Clusters) > 0 {
		a.server = config.Clusters[0].Cluster.Server
	}
	if len(config.Users) > 0 {
		a.plugin = config.Users[0].User.Exec.Command
	}
	a.context = cmp.Or(o.Context, config.Context)
	a.kubectl = slices.Clip(a.kubectl) // commands run at the same time
	a.files, err = absolute(files)
	return a, err
}

func unread(err error) error {
	return fmt.Errorf("read the kubeconfig: %w; correct --kubeconfig and --context (`kubectl config get-contexts` lists the contexts)", err)
}

// inPod makes the service account of the pod in which the engine runs the way to the cluster.
func (a *access) inPod() error {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || !exists("/var/run/secrets/kubernetes.io/serviceaccount/token") {
		return errors.New("find the cluster: there is no kubeconfig with a current context; give --kubeconfig and --context, or set KUBECONFIG")
	}
	a.server = "https://" + net.JoinHostPort(host, port)
	return nil
}

// plain returns the error about a file that is no kubeconfig without the Go types of the
// parser.
func plain(said string) error {
	for _, mark := range []string{": couldn't get version/kind", ": no kind "} {
		if file, _, found := strings.Cut(said, mark); found {
			return errors.New(strings.TrimPrefix(file, "error loading ") + ": it is no kubeconfig")
		}
	}
	return errors.New(said)
}

// absolute returns the absolute paths of the files that exist, separated as in $KUBECONFIG.
func absolute(files []string) (string, error) {
	var list []string
	for _, f := range files {
		if !exists(f) {
			continue
		}
		path, err := filepath.Abs(f)
		if err != nil {
			return "", fmt.Errorf("find the directory of kubeconfig %s: %w", f, err)
		}
		list = append(list, path)
	}
	return strings.Join(list, string(filepath.ListSeparator)), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
