// Package k8s makes vrouter the network of a Kubernetes cluster.
package k8s
