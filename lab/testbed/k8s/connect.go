package k8s

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Options say which cluster and which of its nodes a testbed uses.
type Options struct {
	// Kubeconfig is a file, or several, separated as in $KUBECONFIG; default: $KUBECONFIG,
	// ~/.kube/config, the pod's service account.
	Kubeconfig string
	Context    string   // of the kubeconfig; default: its current context
	Nodes      []string // names; default: the first usable nodes in the order of their names
	Image      string   // has the windtunnel program in its PATH
	NeverPull  bool     // the nodes must have the image
	// Lifetime is the time after which the cluster ends the pods, even if the engine is
	// gone.
	Lifetime time.Duration
	Least    int // number of nodes that the plan needs
	// Colocated adds a second pod on the first node; Service adds services.
	Colocated, Service bool
	// Pairs is set for a matrix: every node sends and receives. Without Nodes, all usable
	// nodes are in it.
	Pairs bool
}

const (
	// callTime is the maximum time of a request to the API server.
	callTime = 10 * time.Second
	// awayTime is the time for which requests are repeated while the API server does not
	// answer, such as during its restart.
	awayTime = time.Minute
)

// dial reads the kubeconfig. It sends no request.
func dial(o Options) (*cluster, error) {
	// client-go logs broken connections to the standard error. The executor reports them.
	klog.SetLogger(logr.Discard())
	config, from, err := readConfig(o)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{} // about privileged pods
	config.UserAgent = "windtunnel"
	c, err := connect(config)
	if err != nil {
		return nil, err
	}
	c.origin, c.server = from, config.Host
	return c, nil
}
