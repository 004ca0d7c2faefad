# Readies the file system of a dockerd and becomes it. Runs as the first process
# of PID and mount namespaces of its own, in a node's network namespace; whatever
# is mounted here is seen by dockerd and its children only, and gone with them.
# Arguments: the node's home, then dockerd's command line.
set -e
home=$1
shift

# The old /proc still counts processes as whoever waits for this one does.
read -r outer rest < /proc/self/stat
echo "$outer" > "$home/dockerd.outer"
mount -t proc proc /proc

# Named network namespaces are others'; a copy of their mounts would keep them
# alive.
umount -R -l /run/netns 2>/dev/null || :

# Docker, containerd and their shims have places of their own in /run, /var/lib
# and /etc, whatever the command line says: a socket there may even belong to
# another containerd, which dockerd would use. They get these instead.
mkdir -p "$home/lib" "$home/etc" "$home/etc.work" "$home/opt" "$home/opt.work"
mount --bind "$home/lib" /var/lib
mount -t overlay -o "lowerdir=/etc,upperdir=$home/etc,workdir=$home/etc.work" overlay /etc 2>/dev/null || {
	cp -a /etc/. "$home/etc/"
	mount --bind "$home/etc" /etc
}
# containerd makes /opt/containerd.
mount -t overlay -o "lowerdir=/opt,upperdir=$home/opt,workdir=$home/opt.work" overlay /opt 2>/dev/null || {
	[ ! -d /opt ] || mount --bind "$home/opt" /opt
}
inner=$home/run${home#/run}
mkdir -p "$inner"
mount --bind "$home" "$inner"
mount --rbind "$home/run" /run
cd /
exec "$@"
