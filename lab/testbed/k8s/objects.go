package k8s

import (
	"fmt"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"windtunnel/lab/system"
)

const (
	// runLabel marks the namespaces of runs, and all objects in them.
	runLabel = "windtunnel/run"
	podLabel = "windtunnel/pod" // name of the pod
	// nodesMark is the annotation of a run's namespace with the names of its nodes.
	nodesMark     = "windtunnel/nodes"
	containerName = "windtunnel"
	leaseName     = "run"
	programName   = "windtunnel" // in the image's PATH
	// graceTime is the time that a pod's process has to end, s. With 0, the kubelet
	// forgets a pod before its processes have released their ports.
	graceTime = 1
)

// PodCommand is the argument with which the windtunnel program keeps a pod running.
const PodCommand = "pod"

// runObjects makes the objects of one run.
type runObjects struct {
	namespace string
	image     string
	neverPull bool
	lifetime  time.Duration
	owner     []meta.OwnerReference // the run's lease
}

func (r *runObjects) labels(pod string) map[string]string {
	labels := map[string]string{runLabel: r.namespace}
	if pod != "" {
		labels[podLabel] = pod
	}
	return labels
}

// namespaceObject returns the run's namespace. It admits privileged pods.
func (r *runObjects) namespaceObject(nodes []string) *core.Namespace {
	labels := r.labels("")
	labels["pod-security.kubernetes.io/enforce"] = "privileged"
	return &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: r.namespace, Labels: labels, Annotations: map[string]string{nodesMark: strings.Join(nodes, ",")}}}
}

// leaseObject returns the lease that the engine renews while the run lasts.
func (r *runObjects) leaseObject(h holder, now time.Time) *coordination.Lease {
	identity, seconds, renewed := h.String(), int32(leaseTime/time.Second), meta.NewMicroTime(now)
	return &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: leaseName, Namespace: r.namespace, Labels: r.labels("")},
		Spec:       coordination.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds, AcquireTime: &renewed, RenewTime: &renewed},
	}
}

// own makes the lease the owner of all further objects.
func (r *runObjects) own(lease *coordination.Lease) {
	r.owner = []meta.OwnerReference{{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: lease.Name, UID: lease.UID}}
}

// podObject returns a pod on a node. A privileged pod is on the host network and sees all
// processes of the node. Any other pod is an ordinary one on the pod network, which may
// also send echo requests.
func (r *runObjects) podObject(name, node string, privileged bool) *core.Pod {
	yes, no, root := true, false, int64(0)
	grace, deadline := int64(graceTime), int64(r.lifetime/time.Second)
	p := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: r.namespace, Labels: r.labels(name), OwnerReferences: r.owner},
		Spec: core.PodSpec{
			// A chosen node is used also if it has taints.
			NodeName: node, Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}},
			RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &deadline,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			Containers: []core.Container{{
				Name: containerName, Image: r.image, Command: []string{programName, PodCommand},
				SecurityContext: &core.SecurityContext{RunAsUser: &root},
			}},
		},
	}
	if r.neverPull {
		p.Spec.Containers[0].ImagePullPolicy = core.PullNever
	}
	security := p.Spec.Containers[0].SecurityContext
	if privileged {
		p.Spec.HostNetwork, p.Spec.HostPID, security.Privileged = true, true, &yes
	} else {
		security.Capabilities = &core.Capabilities{Add: []core.Capability{"NET_RAW"}}
	}
	return p
}

// serviceObject returns a service with the name of a pod, whose ClusterIP leads to the
// tools' ports of the pod.
func (r *runObjects) serviceObject(pod string) *core.Service {
	s := &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: pod, Namespace: r.namespace, Labels: r.labels(""), OwnerReferences: r.owner},
		Spec:       core.ServiceSpec{Type: core.ServiceTypeClusterIP, Selector: r.labels(pod)},
	}
	add := func(port int, protocol core.Protocol) {
		s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{
			Name: fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), port), Protocol: protocol, Port: int32(port), TargetPort: intstr.FromInt32(int32(port)),
		})
	}
	add(system.PublishedProof, core.ProtocolTCP)
	for port := system.PublishedFirst; port <= system.PublishedLast; port++ {
		add(port, core.ProtocolTCP)
		add(port, core.ProtocolUDP)
	}
	return s
}
