# Prepares the file system of dockerd, and then executes dockerd. The script runs in
# the node's network namespace. It is the first process of separate PID and mount
# namespaces. Only dockerd and its children see the mounts, which end with them.
# Arguments: the node's home, then dockerd's command line. The variable keeper is the
# program that is mounted for the containers, if there is one.
set -e
home=$1
shift
[ -z "$keeper" ] || {
	touch "$home/windtunnel"
	mount --bind "$(readlink -f "$keeper")" "$home/windtunnel"
}

# The old /proc shows the PID that this process has outside, for the parent.
read -r outer rest < /proc/self/stat
echo "$outer" > "$home/dockerd.outer"
mount -t proc proc /proc

# A copy of the mounts of named network namespaces would keep the namespaces alive.
umount -R -l /run/netns 2>/dev/null || :

# Docker, containerd and their shims always use some paths in /run, /var/lib and
# /etc. dockerd would even use the socket of another containerd there. So mount
# directories of the node's home over these paths.
mkdir -p "$home/lib" "$home/etc" "$home/etc.work" "$home/opt" "$home/opt.work"
mount --bind "$home/lib" /var/lib
mount -t overlay -o "lowerdir=/etc,upperdir=$home/etc,workdir=$home/etc.work" overlay /etc 2>/dev/null || {
	cp -a /etc/. "$home/etc/"
	mount --bind "$home/etc" /etc
}
# containerd creates /opt/containerd.
mount -t overlay -o "lowerdir=/opt,upperdir=$home/opt,workdir=$home/opt.work" overlay /opt 2>/dev/null || {
	[ ! -d /opt ] || mount --bind "$home/opt" /opt
}
inner=$home/run${home#/run}
mkdir -p "$inner"
mount --rbind "$home" "$inner"
mount --rbind "$home/run" /run
cd /
exec "$@"
