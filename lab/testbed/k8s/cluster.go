package k8s

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// cluster is a connection to the API server of a cluster. It has clients for the used kinds
// of objects only: client-go's clientset has all kinds, which doubles the size of the
// program.
type cluster struct {
	namespaces kind[*core.Namespace, *core.NamespaceList]
	nodes      kind[*core.Node, *core.NodeList]
	pods       func(namespace string) kind[*core.Pod, *core.PodList]
	services   func(namespace string) kind[*core.Service, *core.ServiceList]
	events     func(namespace string) kind[*core.Event, *core.EventList]
	leases     func(namespace string) kind[*coordination.Lease, *coordination.LeaseList]
	reviews    reviews

	server string // URL
	origin origin
	config *rest.Config
	core   rest.Interface // for exec
}

// kind is the client for a kind of objects.
type kind[T, L any] interface {
	Create(ctx context.Context, object T, o meta.CreateOptions) (T, error)
	Update(ctx context.Context, object T, o meta.UpdateOptions) (T, error)
	Get(ctx context.Context, name string, o meta.GetOptions) (T, error)
	List(ctx context.Context, o meta.ListOptions) (L, error)
	Delete(ctx context.Context, name string, o meta.DeleteOptions) error
}

// reviews asks for the permissions of the user.
type reviews interface {
	Create(ctx context.Context, review *authorization.SelfSubjectAccessReview, o meta.CreateOptions) (*authorization.SelfSubjectAccessReview, error)
}

// kinds returns the used kinds of objects. They are registered at the first use, because the
// program also runs as an agent, which needs none.
var kinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, coordination.AddToScheme, authorization.AddToScheme} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("k8s: register the kinds of objects: %v", err)) // two kinds have one name
		}
	}
	return s
})

// parameters returns the codec of options in URLs.
var parameters = sync.OnceValue(func() runtime.ParameterCodec { return runtime.NewParameterCodec(kinds()) })

// connect makes the clients. It sends no request.
func connect(config *rest.Config) (*cluster, error) {
	limit, err := limitPlugin(config)
	if err != nil {
		return nil, err
	}
	bounded := rest.CopyConfig(config)
	bounded.Timeout = callTime
	shared, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	limit(shared)
	c := &cluster{config: config} // without a timeout: exec lasts for a trial
	if c.core, err = client(bounded, shared, "/api", core.SchemeGroupVersion); err != nil {
		return nil, err
	}
	coord, err := client(bounded, shared, "/apis", coordination.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	auth, err := client(bounded, shared, "/apis", authorization.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	c.namespaces = of(c.core, "namespaces", "", func() *core.Namespace { return &core.Namespace{} }, func() *core.NamespaceList { return &core.NamespaceList{} })
	c.nodes = of(c.core, "nodes", "", func() *core.Node { return &core.Node{} }, func() *core.NodeList { return &core.NodeList{} })
	c.pods = func(in string) kind[*core.Pod, *core.PodList] {
		return of(c.core, "pods", in, func() *core.Pod { return &core.Pod{} }, func() *core.PodList { return &core.PodList{} })
	}
	c.services = func(in string) kind[*core.Service, *core.ServiceList] {
		return of(c.core, "services", in, func() *core.Service { return &core.Service{} }, func() *core.ServiceList { return &core.ServiceList{} })
	}
	c.events = func(in string) kind[*core.Event, *core.EventList] {
		return of(c.core, "events", in, func() *core.Event { return &core.Event{} }, func() *core.EventList { return &core.EventList{} })
	}
	c.leases = func(in string) kind[*coordination.Lease, *coordination.LeaseList] {
		return of(coord, "leases", in, func() *coordination.Lease { return &coordination.Lease{} }, func() *coordination.LeaseList { return &coordination.LeaseList{} })
	}
	c.reviews = gentype.NewClient("selfsubjectaccessreviews", auth, parameters(), "", func() *authorization.SelfSubjectAccessReview { return &authorization.SelfSubjectAccessReview{} })
	return c, nil
}

// client returns a client for a group of the API.
func client(config *rest.Config, shared *http.Client, path string, group schema.GroupVersion) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion, own.NegotiatedSerializer = path, &group, serializer.NewCodecFactory(kinds()).WithoutConversion()
	return rest.RESTClientForConfigAndClient(own, shared)
}

// object is what the clients of gentype need.
type object interface {
	runtime.Object
	meta.Object
}

// of returns the client for a kind of objects in a namespace.
func of[T object, L runtime.Object](client rest.Interface, resource, namespace string, one func() T, list func() L) kind[T, L] {
	return gentype.NewClientWithList(resource, client, parameters(), namespace, one, list)
}
