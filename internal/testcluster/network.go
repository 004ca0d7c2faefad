package testcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"windtunnel/internal/must"
)

// Bridge returns the configuration of a node's CNI plugin bridge, for Options.CNI. Pods of two nodes
// reach each other with Options.NodeRoutes.
func Bridge(node int) string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "test-network", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.%d.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`, node)
}

// InstallVrouter makes vrouter the network of pods. archive has its image.
func (k *Cluster) InstallVrouter(archive string) {
	k.T.Helper()
	if said, err := k.Kubectl(k.VrouterManifest(Tags(k.T, archive)[0]), "apply", "-f", "-"); err != nil {
		k.T.Fatalf("install vrouter: %v: %s", err, said)
	}
}

// VrouterManifest returns the output of `vrouter k8s manifest` for the cluster. image is the tag of
// vrouter's image. Without flags, the first node runs the store.
func (k *Cluster) VrouterManifest(image string, flags ...string) string {
	k.T.Helper()
	if len(flags) == 0 {
		flags = []string{"--store-node", k.Nodes[0].Name}
	}
	if k.options.NoKubeProxy {
		flags = append(flags, "--kube-proxy-replacement", "--api-server", k.API())
	}
	k.Await("all nodes are in the cluster", func() bool {
		nodes, err := k.Kubectl("", "get", "nodes", "-o", "name")
		return err == nil && len(strings.Fields(nodes)) == len(k.Nodes)
	})
	out, err := k.Command(filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), append([]string{"k8s", "manifest", "--image", image, "--subnet", k.both(PodNetwork, PodNetwork6)}, flags...)...).Output()
	must.Succeed(k.T, err)
	return string(out)
}

const (
	// FlannelNetwork is the name of flannel's CNI configuration, which is that of flannel's manifest.
	FlannelNetwork  = "cbr0"
	flannelConflist = `{"cniVersion": "0.3.1", "name": "` + FlannelNetwork + `", "plugins": [{"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}}]}`
	// FlannelNamespace has flannel's pods.
	FlannelNamespace = "kube-flannel"
	flannelPod       = `
---
apiVersion: v1
kind: Pod
metadata: {name: kube-flannel-ds-NODE, namespace: kube-flannel}
spec:
  nodeName: NODE
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: run, hostPath: {path: /run/flannel, type: DirectoryOrCreate}}
  - {name: files, hostPath: {path: FOLDER, type: DirectoryOrCreate}}
  containers:
  - name: kube-flannel
    image: IMAGE
    imagePullPolicy: Never
    securityContext: {privileged: true}
    volumeMounts: [{name: run, mountPath: /run/flannel}, {name: files, mountPath: FOLDER}]
    env: [{name: NODE_NAME, value: NODE}]
    command: [flanneld, --kube-subnet-mgr, --kubeconfig-file, FOLDER/kubeconfig, --net-config-path, FOLDER/net-conf.json, --iface, eth0, --ip-masq=false, --iptables-forward-rules=false]
`
)

// InstallFlannel makes flannel with VXLAN the network of pods. Its daemon, a program of the sandbox
// image, is a pod on each node. The nodes have podCIDRs.
func (k *Cluster) InstallFlannel() {
	t := k.T
	t.Helper()
	conf, err := json.Marshal(map[string]any{"Network": PodNetwork, "Backend": map[string]string{"Type": "vxlan"}})
	must.Succeed(t, err)
	k.Write("net-conf.json", string(conf))
	if said, err := k.Kubectl("", "create", "namespace", FlannelNamespace); err != nil {
		t.Fatalf("create the namespace of flannel: %v: %s", err, said)
	}
	k.Await("the namespace of flannel has a service account", func() bool {
		_, err := k.Kubectl("", "-n", FlannelNamespace, "get", "serviceaccount", "default")
		return err == nil
	})
	pods := ""
	for _, n := range k.Nodes {
		pods += strings.NewReplacer("NODE_NAME", "NODE_NAME", "NODE", n.Name, "IMAGE", SandboxImage, "FOLDER", k.Dir).Replace(flannelPod)
	}
	if said, err := k.Kubectl(pods, "apply", "-f", "-"); err != nil {
		t.Fatalf("create the pods of flannel: %v: %s", err, said)
	}
	for _, n := range k.Nodes {
		k.Await("flannel has the subnet of "+n.Name, func() bool { return exists(n.Root + "/run/flannel/subnet.env") })
		must.Succeed(t, os.WriteFile(n.Root+"/etc/cni/net.d/10-test.conflist", []byte(flannelConflist), 0o644))
	}
}
