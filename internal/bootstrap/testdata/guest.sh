# SPDX-License-Identifier: MPL-2.0
#
# Makes a clean Debian host of a container, on which a daemon can make loop devices and apt finds its sources through
# the proxy $1. Two persons have accounts: alice, and bob.
set -eu
i=0
while [ $i -lt 256 ]; do
    [ -e /dev/loop$i ] || mknod -m 660 /dev/loop$i b 7 $i
    i=$((i + 1))
done

# The daemon's loop files, in memory: a proof writes a lot, and this host's disk is shared.
mkdir -p /var/lib/lxd/disks
mount -t tmpfs -o mode=700 loopfiles /var/lib/lxd/disks

cat >/etc/apt/apt.conf.d/00test <<CONF
Acquire::http::Proxy "$1";
Acquire::https::Proxy "$1";
Acquire::Languages "none";
CONF
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/test

ip link set lo up # which an init would have done

# The smallest installation of Debian lacks it, and LXD does not start without.
dpkg --purge ifupdown iproute2 >/dev/null

useradd --create-home alice
useradd --create-home bob
