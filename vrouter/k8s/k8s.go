// Package k8s makes vrouter the network of a Kubernetes cluster: the manifest, the pods that it
// describes, the test of a cluster's network, and the controller.
package k8s
