package system

// ServiceIP is the pod network of a Kubernetes cluster through a ClusterIP: the sender
// connects to the address of a service, which kube-proxy or the CNI plugin replaces by the
// address of the receiver's pod.
type ServiceIP struct{ CNI }

func (ServiceIP) Name() string { return "service" }
func (ServiceIP) About() About {
	return About{
		Title: "the service address", Description: "pods on the pod network of a Kubernetes cluster, reached by the ClusterIP of a service",
		Publishes: true, InCluster: true, NotColocated: "use the system cni",
	}
}
