# Go, the compilers, and every optional program that Debian 12 has.
# `windtunnel doctor` names what is still missing (flannel, ntttcp-for-linux).
#
#   docker build -t windtunnel-dev - < Dockerfile
#   docker run --rm -it --privileged -v "$PWD:/src" -v /lib/modules:/lib/modules:ro windtunnel-dev
#
# The lab uses the host's kernel: it needs --privileged for namespaces, devices
# and BPF, and the host's modules.
FROM golang:1.26-bookworm AS go

FROM debian:bookworm

# netperf is in Debian's component non-free.
RUN sed -i 's/^Components: main$/Components: main non-free/' /etc/apt/sources.list.d/debian.sources

# Packages start no daemons: the lab starts its own, in its own namespaces.
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    # build, generate, race detector
    ca-certificates clang gcc git libbpf-dev libc6-dev linux-libc-dev make npm \
    # traffic tools
    fio iperf3 netperf qperf sockperf \
    # systems under test
    containerd docker.io etcd-server frr iptables openvswitch-switch runc util-linux wireguard-go wireguard-tools \
    # virtual machines
    busybox-static qemu-system-x86 \
    # programs of the tests: a browser, packet tools, PDF, a database
    chromium ethtool iproute2 iputils-ping kmod poppler-utils postgresql procps python3-scapy tayga tcpdump traceroute tshark \
 && rm -rf /var/lib/apt/lists/*

COPY --from=go /usr/local/go /usr/local/go
ENV PATH=/usr/local/go/bin:/root/go/bin:$PATH
# The mounted repository belongs to another user.
RUN git config --system --add safe.directory /src
WORKDIR /src
