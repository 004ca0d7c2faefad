// The dependencies of Weave Net 2.6.5, in versions with which it compiles. Weave itself has them in
// a vendor folder, which the Go module proxy leaves out. `make weaver` uses this file. Do not run
// `go mod tidy` here: this module has no Go files, so it would remove all lines.
module windtunnel/lab/system/weaver

go 1.26.0

require (
	github.com/andybalholm/go-bit v1.0.1
	github.com/aws/aws-sdk-go v1.34.0
	github.com/boltdb/bolt v1.3.1
	github.com/containernetworking/cni v1.1.1
	github.com/coreos/go-iptables v0.3.0
	github.com/docker/libnetwork v0.8.0-dev.2.0.20180212220201-119badbd737b
	github.com/fsouza/go-dockerclient v1.10.0
	github.com/google/gopacket v1.1.16
	github.com/gorilla/mux v1.8.0
	github.com/j-keck/arping v0.0.0-20160618110441-2cf9dc699c56
	github.com/miekg/dns v1.0.4
	github.com/pkg/errors v0.9.1
	github.com/pkg/profile v1.2.1
	github.com/sirupsen/logrus v1.10.2
	github.com/vishvananda/netlink v1.1.1-0.20210330154013-f5de75959ad5
	github.com/weaveworks/common v0.0.0-20180321110636-ebab3a78900a
	github.com/weaveworks/go-checkpoint v0.0.0-20170503165305-ebbb8b0518ab
	github.com/weaveworks/go-odp v0.0.0-20181017121109-6b0aa22550d9
	github.com/weaveworks/mesh v0.0.0-20191105120815-58dbcc3e8e63
	github.com/weaveworks/weave v2.6.5+incompatible
	k8s.io/api v0.22.5
	k8s.io/apimachinery v0.22.5
	k8s.io/client-go v0.22.5
)

require (
	github.com/Azure/go-ansiterm v0.0.0-20210617225240-d185dfc1b5a1 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/Nvveen/Gotty v0.0.0-20120604004816-cd527374f1e5 // indirect
	github.com/checkpoint-restore/go-criu/v5 v5.3.0 // indirect
	github.com/cilium/ebpf v0.7.0 // indirect
	github.com/containerd/console v1.0.3 // indirect
	github.com/containerd/containerd v1.6.18 // indirect
	github.com/containerd/log v0.2.0 // indirect
	github.com/coreos/go-systemd/v22 v22.3.2 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.2 // indirect
	github.com/cyphar/filepath-securejoin v0.2.4 // indirect
	github.com/docker/docker v24.0.7+incompatible // indirect
	github.com/docker/go-connections v0.8.2 // indirect
	github.com/docker/go-units v0.5.0 // indirect
	github.com/godbus/dbus/v5 v5.0.6 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/moby/docker-image-spec v1.3.1 // indirect
	github.com/moby/patternmatcher v0.6.0 // indirect
	github.com/moby/sys/atomicwriter v0.1.0 // indirect
	github.com/moby/sys/mount v0.3.5 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	github.com/moby/sys/sequential v0.6.0 // indirect
	github.com/moby/sys/user v0.5.0 // indirect
	github.com/moby/sys/userns v0.2.1 // indirect
	github.com/moby/term v0.0.0-20210619224110-3f7ff695adc6 // indirect
	github.com/morikuni/aec v1.0.0 // indirect
	github.com/mrunalp/fileutils v0.5.1 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/opencontainers/runc v1.1.12 // indirect
	github.com/opencontainers/runtime-spec v1.0.3-0.20210326190908-1c3f411f0417 // indirect
	github.com/opencontainers/selinux v1.10.1 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/rootless-containers/rootlesskit v1.1.1 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/seccomp/libseccomp-golang v0.9.2-0.20220502022130-f33da4d89646 // indirect
	github.com/shurcooL/sanitized_anchor_name v1.0.0 // indirect
	github.com/syndtr/gocapability v0.0.0-20200815063812-42c35b437635 // indirect
	github.com/urfave/cli v1.22.2 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/containernetworking/cni => github.com/containernetworking/cni v0.5.2

replace (
	k8s.io/api => k8s.io/api v0.17.4
	k8s.io/apimachinery => k8s.io/apimachinery v0.17.4
	k8s.io/client-go => k8s.io/client-go v0.17.4
)

replace github.com/prometheus/client_golang => github.com/prometheus/client_golang v0.8.0
