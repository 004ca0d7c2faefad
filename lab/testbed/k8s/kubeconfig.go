package k8s

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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

// readConfig reads the kubeconfig. Options with the returned origin lead to the same cluster
// later.
func readConfig(o Options) (*rest.Config, origin, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if list := filepath.SplitList(o.Kubeconfig); len(list) < 2 || exists(o.Kubeconfig) {
		rules.ExplicitPath = o.Kubeconfig
	} else {
		rules.Precedence = list
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, origin{}, errors.New("find the cluster: there is no kubeconfig with a current context; give --kubeconfig and --context, or set KUBECONFIG")
	}
	if err != nil {
		return nil, origin{}, fmt.Errorf("read the kubeconfig: %w; correct --kubeconfig and --context (`kubectl config get-contexts` lists the contexts)", plain(err))
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, origin{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	from := origin{context: cmp.Or(o.Context, raw.CurrentContext)}
	if from.context == "" {
		return config, origin{}, nil
	}
	from.files, err = absolute(rules.GetLoadingPrecedence())
	return config, from, err
}

// plain returns the error about a file that is no kubeconfig without the Go types of the
// parser.
func plain(err error) error {
	for _, mark := range []string{": couldn't get version/kind", ": no kind "} {
		if file, _, found := strings.Cut(err.Error(), mark); found {
			return errors.New(file + ": it is no kubeconfig")
		}
	}
	return err
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
