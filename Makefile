# Windtunnel: `make demo` shows what it does, `make test` runs every test.

GO         ?= go
GO_WANTED  := 1.26
REVISION   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -s -w -X main.revision=$(REVISION)
export CGO_ENABLED = 0
export GOTOOLCHAIN ?= auto
# Build, lint and tests use the same flags, so each package is compiled only once. With
# -trimpath, clones in other directories share the compiled packages.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)

.PHONY: all help build weaver demo test test-kubernetes test-race bench lint generate dist image dist-test clean go-version root

all: build

# Each target with a comment behind two # signs is listed.
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: go-version ## Build every program into bin/
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# The lab's system "weave" needs weaver, the router of Weave Net, which no distribution packages.
# weaver creates a dummy device for a moment, to set the MTU of a bridge. Some kernels have no
# dummy devices, so this build uses an ifb device instead. The go command does not let a build
# replace a file of the module cache, so the source is copied.
weaver: go-version ## Build Weave's router from its source, and install it (C compiler, libpcap-dev)
	@cd lab/system/weaver && made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && cp go.mod go.sum "$$made" && $(GO) mod download github.com/weaveworks/weave && \
	cp -r "$$($(GO) list -m -f '{{.Dir}}' github.com/weaveworks/weave)" "$$made/weave" && chmod -R u+w "$$made/weave" && \
	echo 'module github.com/weaveworks/weave' >"$$made/weave/go.mod" && sed -i 's/netlink[.]Dummy{/netlink.Ifb{/' "$$made/weave/net/bridge.go" && \
	$(GO) mod edit -replace "github.com/weaveworks/weave=$$made/weave" "$$made/go.mod" && \
	CGO_ENABLED=1 $(GO) install -modfile "$$made/go.mod" -ldflags '-s -w -X main.version=2.6.5' github.com/weaveworks/weave/prog/weaver

# The lab's systems "flannel-…" need flanneld, which no distribution packages either.
FLANNEL := v0.26.7
flannel: go-version ## Build flannel from its source, and install it (C compiler)
	CGO_ENABLED=1 $(GO) install -ldflags '-s -w -X github.com/flannel-io/flannel/pkg/version.Version=$(FLANNEL)' github.com/flannel-io/flannel@$(FLANNEL)

# Go 1.21 and newer fetch the wanted toolchain by themselves.
go-version:
	@command -v $(GO) >/dev/null 2>&1 || { echo "Go is not installed. Windtunnel needs Go $(GO_WANTED) (1.21 or newer fetches it by itself): see https://go.dev/doc/install, or 'apt-get install golang' where the distribution's is new enough." >&2; exit 1; }
	@v=$$(GOTOOLCHAIN=local $(GO) env GOVERSION 2>/dev/null | sed 's/^go//'); major=$${v%%.*}; rest=$${v#*.}; minor=$${rest%%.*}; minor=$${minor%%[!0-9]*}; \
	if [ "$${major:-0}" -lt 1 ] || { [ "$$major" -eq 1 ] && [ "$${minor:-0}" -lt 21 ]; }; then \
		echo "Go $$v is too old. Windtunnel needs Go $(GO_WANTED) (1.21 or newer fetches it by itself): see https://go.dev/doc/install." >&2; exit 1; fi

root:
	@[ "$$(id -u)" = 0 ] || { echo "This makes network namespaces and devices, which needs root: use sudo make $(MAKECMDGOALS)." >&2; exit 1; }

# Measures raw, bridge and VXLAN networking on this machine, and then vrouter
# beside them, within 5 minutes where nothing has to be repeated.
demo: root build ## Measure four networks on this machine in about 5 minutes (root)
	@bin/windtunnel doctor --brief
	bin/windtunnel run quick
	bin/windtunnel run quick-overlay --scenario bridge,vrouter-direct,vxlan,vrouter-vxlan

# What cannot run here (no root, no browser, a tool that is not installed) is
# skipped with its reason and counted. The packages of ALONE read the CPUs, fill
# them, or hold the machine: they run one at a time. The others run three at a time,
# because some mostly wait, and the slowest (FIRST) run from the beginning. The tests of
# LATE run alone: TestFaults counts lost packets, and measurements between hosts fill both
# CPUs. The lab's tests run the vrouter program, as a user would have it in PATH. `make
# lint` vets the tests. Without symbol tables (-s) they link faster.
ALONE := ./lab/experiment ./lab/host ./lab/meter/... ./lab/profile ./lab/testbed/netns ./lab/testbed/ssh ./lab/tool
FIRST := ./vrouter/e2e ./cmd/windtunnel
LATE  := ^Test(Faults|ARunBetweenHosts|CtrlCEndsARunBetweenHosts|AKilledRunBetweenHosts|LabCleanReturnsTheDevicesOfHosts|ThePublishedExperimentRunsBetweenHosts)
TESTS  = PATH="$(CURDIR)/bin:$$PATH" $(GO) tool gotestsum --format standard-quiet -- -count=1 -vet=off -ldflags=-s -timeout 20m $(TESTFLAGS)

test: build ## Run every test; as root, else those that need root are skipped
	@alone=$$($(GO) list $(ALONE) $(FIRST)) && others=$$($(GO) list ./... | grep -vxF "$$alone") || exit 1; failed=0; \
	$(TESTS) -p 3 -skip '$(LATE)' $(FIRST) $$others || failed=1; \
	$(TESTS) -p 1 $(ALONE) || failed=1; \
	$(TESTS) -p 1 -run '$(LATE)' $(FIRST) || failed=1; \
	exit $$failed

# Builds Kubernetes and flannel once into the user's cache: about 6 minutes, and 4 GB of Go's
# build cache. Needs a C compiler and the Debian packages containerd, etcd-server, runc and
# iptables.
test-kubernetes: root build image ## Test the Kubernetes testbed on a cluster that the test starts (root)
	WINDTUNNEL_KUBERNETES=1 $(GO) test -count=1 -v -timeout 40m -run TestACluster ./lab/testbed/k8s

# The packages that start goroutines, whose tests need no root, and that do not import SQLite,
# which takes long to compile. The race detector needs cgo and a C compiler. By default each
# program with the detector sleeps for 1 s at its end.
RACE := ./lab/agent ./lab/traffic ./lab/udptun ./vrouter/api ./vrouter/docker ./vrouter/fleet ./vrouter/store

test-race: go-version ## Run the tests of concurrent packages under the race detector
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -short -count=1 -vet=off -p 2 $(TESTFLAGS) $(RACE)

# The figures of docs/performance.md. Nothing else should run meanwhile.
bench: root build ## Measure the figures of docs/performance.md (root, a quiet machine)
	WINDTUNNEL_TIMING_TESTS=1 $(GO) test -count=1 -v -run TestBusyAgreesWithAKnownLoad ./lab/meter
	$(GO) run ./internal/bench

# The largest file that git may hold, bytes: a program or a data set is larger.
LARGEST := 1000000

lint: go-version ## Check formatting, vet, staticcheck, unparam, spelling and file sizes
	@large=$$(git ls-tree -rl HEAD | awk '$$4 > $(LARGEST) {print $$5}'); [ -z "$$large" ] || { echo "remove from git what exceeds $(LARGEST) bytes:" $$large >&2; exit 1; }
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change:" $$unformatted >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) tool unparam ./...
	$(GO) tool misspell -error -i ECT $$(git ls-files '*.go' '*.c' '*.h' '*.md' '*.yaml')

# The eBPF objects and the suites' schema. Needs clang and libbpf's headers.
generate: go-version ## Write generated files: eBPF objects, JSON Schema, charts (clang, libbpf-dev, npm)
	BPF2GO_CFLAGS="-O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/$$(gcc -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH)" $(GO) generate ./...

# Programs, packages and images for amd64 and arm64. The tool is a separate module, so that its
# libraries are no dependencies of the programs; docs/packages.md.
dist: go-version ## Build a release into out/dist/: static programs, packages, images, SBOMs
	cd internal/dist && $(GO) run . -root ../.. -o ../../out/dist

# With the revision of `make build`, the programs find the image without --image.
image: go-version ## Build the container image of windtunnel, out/windtunnel.image.tar, without a daemon
	cd internal/dist && $(GO) run . -root ../.. -revision '$(REVISION)' -image ../../out/windtunnel.image.tar

# It builds everything twice: some minutes with an empty build cache.
dist-test: go-version ## Test the release: packages, images, SBOMs, reproducibility (root)
	staticcheck=$$($(GO) tool -n staticcheck) && cd internal/dist && $(GO) vet ./... && $$staticcheck ./... && $(GO) test -count=1 -vet=off -timeout 30m $(TESTFLAGS) ./...

clean: ## Remove bin/ and out/
	rm -rf bin out
