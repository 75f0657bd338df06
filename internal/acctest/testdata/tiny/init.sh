#!/bin/sh
# The first process of a tiny machine: asks for an address on every interface, also on those that come later, and ends
# when LXD wants an orderly stop (SIGPWR).
trap 'exit 0' PWR TERM INT

# asks tells whether a DHCP client serves the interface.
asks() {
	[ -s "/run/udhcpc.$1" ] && kill -0 "$(cat "/run/udhcpc.$1")" 2>/dev/null
}

rm -f /run/udhcpc.* # of an earlier boot
ip link set lo up

while :; do
	for path in /sys/class/net/eth*; do
		name=${path##*/}
		if [ -e "$path" ] && ! asks "$name"; then
			ip link set "$name" up
			udhcpc -i "$name" -f -S -t 200 -T 1 -A 1 -s /etc/udhcpc.sh -x "hostname:$(hostname)" >/dev/null 2>&1 &
			echo $! >"/run/udhcpc.$name"
		fi
	done
	sleep 1 &
	wait $!
done
