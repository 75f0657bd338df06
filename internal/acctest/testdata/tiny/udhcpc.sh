#!/bin/sh
# Applies what the DHCP client learned.
case $1 in
deconfig)
	ip addr flush dev "$interface"
	;;
bound | renew)
	ip addr replace "$ip/$mask" dev "$interface"
	[ -z "$router" ] || ip route replace default via "${router%% *}" dev "$interface"
	{
		[ -z "$domain" ] || echo "search $domain"
		for server in $dns; do echo "nameserver $server"; done
	} >/etc/resolv.conf
	;;
esac
