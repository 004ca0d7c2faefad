package k8s

import (
	"fmt"
	"strings"
	"time"

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

// The types of objects have the fields that the lab reads or writes. The API server keeps what it
// gives the other fields when it makes an object.
type (
	metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace,omitempty"`
		UID               string            `json:"uid,omitempty"`
		ResourceVersion   string            `json:"resourceVersion,omitempty"`
		CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
		Labels            map[string]string `json:"labels,omitempty"`
		Annotations       map[string]string `json:"annotations,omitempty"`
		OwnerReferences   []owner           `json:"ownerReferences,omitempty"`
	}
	owner struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
	}
	namespace struct {
		Metadata metadata `json:"metadata"`
	}
	lease struct {
		Metadata metadata  `json:"metadata"`
		Spec     leaseSpec `json:"spec"`
	}
	leaseSpec struct {
		HolderIdentity       string     `json:"holderIdentity,omitempty"`
		LeaseDurationSeconds int        `json:"leaseDurationSeconds,omitempty"`
		AcquireTime          *microTime `json:"acquireTime,omitempty"`
		RenewTime            *microTime `json:"renewTime,omitempty"`
	}
	nodeObject struct {
		Metadata metadata   `json:"metadata"`
		Spec     nodeSpec   `json:"spec"`
		Status   nodeStatus `json:"status"`
	}
	nodeSpec struct {
		Unschedulable bool    `json:"unschedulable,omitempty"`
		Taints        []taint `json:"taints,omitempty"`
	}
	taint      struct{ Key, Effect string }
	nodeStatus struct {
		Conditions []condition     `json:"conditions,omitempty"`
		Addresses  []statusAddress `json:"addresses,omitempty"`
		NodeInfo   struct {
			OperatingSystem, Architecture, KernelVersion, KubeletVersion, ContainerRuntimeVersion, OSImage string
		} `json:"nodeInfo"`
		Images []struct{ Names []string } `json:"images,omitempty"`
	}
	condition     struct{ Type, Status, Reason, Message string }
	statusAddress struct{ Type, Address string }
	podObject     struct {
		Metadata metadata  `json:"metadata"`
		Spec     podSpec   `json:"spec"`
		Status   podStatus `json:"status,omitzero"`
	}
	podSpec struct {
		NodeName                      string       `json:"nodeName"`
		Tolerations                   []toleration `json:"tolerations"`
		RestartPolicy                 string       `json:"restartPolicy"`
		TerminationGracePeriodSeconds int          `json:"terminationGracePeriodSeconds"`
		ActiveDeadlineSeconds         int          `json:"activeDeadlineSeconds,omitempty"`
		AutomountServiceAccountToken  bool         `json:"automountServiceAccountToken"`
		EnableServiceLinks            bool         `json:"enableServiceLinks"`
		HostNetwork                   bool         `json:"hostNetwork,omitempty"`
		HostPID                       bool         `json:"hostPID,omitempty"`
		Containers                    []container  `json:"containers"`
	}
	toleration struct {
		Operator string `json:"operator"`
	}
	container struct {
		Name            string   `json:"name"`
		Image           string   `json:"image"`
		ImagePullPolicy string   `json:"imagePullPolicy,omitempty"`
		Command         []string `json:"command"`
		SecurityContext security `json:"securityContext"`
	}
	security struct {
		RunAsUser    int           `json:"runAsUser"`
		Privileged   bool          `json:"privileged,omitempty"`
		Capabilities *capabilities `json:"capabilities,omitempty"`
	}
	capabilities struct {
		Add []string `json:"add"`
	}
	podStatus struct {
		Phase, Reason, Message string
		PodIPs                 []struct{ IP string }
		ContainerStatuses      []containerStatus
	}
	containerStatus struct {
		Image string
		State containerState
	}
	containerState struct {
		Waiting    *struct{ Reason, Message string }
		Terminated *struct {
			ExitCode        int
			Reason, Message string
		}
	}
	service struct {
		Metadata metadata    `json:"metadata"`
		Spec     serviceSpec `json:"spec"`
	}
	serviceSpec struct {
		ClusterIP string            `json:"clusterIP,omitempty"`
		Selector  map[string]string `json:"selector"`
		Ports     []servicePort     `json:"ports"`
	}
	servicePort struct {
		Name     string `json:"name"`
		Protocol string `json:"protocol"`
		Port     int    `json:"port"`
	}
	event  struct{ Type, Reason, Message string }
	review struct {
		Spec struct {
			ResourceAttributes struct {
				Group       string `json:"group"`
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Verb        string `json:"verb"`
			} `json:"resourceAttributes"`
		} `json:"spec"`
		Status struct{ Allowed bool } `json:"status"`
	}
)

// microTime is a time of a lease. The API reads it with six digits after the second only.
type microTime struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t microTime) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000000Z07:00"`)), nil
}

// runObjects makes the objects of one run.
type runObjects struct {
	namespace string
	image     string
	neverPull bool
	lifetime  time.Duration
	owner     []owner // the run's lease
}

func (r *runObjects) labels(pod string) map[string]string {
	labels := map[string]string{runLabel: r.namespace}
	if pod != "" {
		labels[podLabel] = pod
	}
	return labels
}

// namespaceObject returns the run's namespace. It admits privileged pods.
func (r *runObjects) namespaceObject(nodes []string) *namespace {
	labels := r.labels("")
	labels["pod-security.kubernetes.io/enforce"] = "privileged"
	return &namespace{metadata{Name: r.namespace, Labels: labels, Annotations: map[string]string{nodesMark: strings.Join(nodes, ",")}}}
}

// leaseObject returns the lease that the engine renews while the run lasts.
func (r *runObjects) leaseObject(h holder, now time.Time) *lease {
	renewed := &microTime{now}
	return &lease{
		metadata{Name: leaseName, Namespace: r.namespace, Labels: r.labels("")},
		leaseSpec{HolderIdentity: h.String(), LeaseDurationSeconds: int(leaseTime / time.Second), AcquireTime: renewed, RenewTime: renewed},
	}
}

// own makes the lease the owner of all further objects.
func (r *runObjects) own(l *lease) {
	r.owner = []owner{{"coordination.k8s.io/v1", "Lease", l.Metadata.Name, l.Metadata.UID}}
}

// podObject returns a pod on a node. A privileged pod is on the host network and sees all
// processes of the node. Any other pod is an ordinary one on the pod network, which may
// also send echo requests.
func (r *runObjects) podObject(name, node string, privileged bool) *podObject {
	c := container{Name: containerName, Image: r.image, Command: []string{programName, system.KeepCommand}, SecurityContext: security{Privileged: privileged}}
	if r.neverPull {
		c.ImagePullPolicy = "Never"
	}
	if !privileged {
		c.SecurityContext.Capabilities = &capabilities{Add: []string{"NET_RAW"}}
	}
	return &podObject{
		Metadata: metadata{Name: name, Namespace: r.namespace, Labels: r.labels(name), OwnerReferences: r.owner},
		Spec: podSpec{
			// A chosen node is used also if it has taints.
			NodeName: node, Tolerations: []toleration{{Operator: "Exists"}},
			RestartPolicy: "Never", TerminationGracePeriodSeconds: graceTime, ActiveDeadlineSeconds: int(r.lifetime / time.Second),
			HostNetwork: privileged, HostPID: privileged, Containers: []container{c},
		},
	}
}

// serviceObject returns a service with the name of a pod, whose ClusterIP leads to the
// tools' ports of the pod.
func (r *runObjects) serviceObject(pod string) *service {
	s := &service{
		Metadata: metadata{Name: pod, Namespace: r.namespace, Labels: r.labels(""), OwnerReferences: r.owner},
		Spec:     serviceSpec{Selector: r.labels(pod)},
	}
	add := func(port int, protocol string) {
		s.Spec.Ports = append(s.Spec.Ports, servicePort{fmt.Sprintf("%s-%d", strings.ToLower(protocol), port), protocol, port})
	}
	add(system.PublishedProof, "TCP")
	for port := system.PublishedFirst; port <= system.PublishedLast; port++ {
		add(port, "TCP")
		add(port, "UDP")
	}
	return s
}
