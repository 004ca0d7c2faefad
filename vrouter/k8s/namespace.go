package k8s

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// NetworkAnnotation is the annotation of a namespace with the name of the network of its pods.
const NetworkAnnotation = "vrouter/network"

// InCluster, in place of the path of a kubeconfig, is the service account of this pod.
const InCluster = "in-cluster"

// answerTimeout is less than the time limit of the CNI plugin.
const answerTimeout = 5 * time.Second

// ConfigOf returns how to connect to the cluster's API server. There is no limit of requests a second: client-go's
// default of 5 makes pods that start together wait for their networks.
func ConfigOf(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != InCluster {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes cluster by %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// Connect returns a client of the cluster's API server for the metadata of objects.
func Connect(kubeconfig string) (metadata.Interface, error) {
	config, err := ConfigOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	return metadata.NewForConfig(config)
}

// NetworkOf returns a function that reads the annotation of a namespace; "": it has none. If the
// API server does not answer, the function returns its last answer for the namespace.
func NetworkOf(cluster metadata.Interface) func(ctx context.Context, namespace string) (string, error) {
	var mu sync.Mutex
	last := map[string]string{}
	return func(ctx context.Context, namespace string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		o, err := cluster.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, namespace, metav1.GetOptions{})
		mu.Lock()
		defer mu.Unlock()
		if network, known := last[namespace]; err != nil && known && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return network, nil
		}
		if err != nil {
			delete(last, namespace)
			return "", err
		}
		last[namespace] = o.Annotations[NetworkAnnotation]
		return last[namespace], nil
	}
}
