#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Builds what the tests of virtual machines need, in a directory:
#
#   build.sh guest DIRECTORY    guest.tar.gz and guest.qcow2: an image for LXD that boots in seconds, under BIOS and UEFI
#   build.sh host DIRECTORY     the same, and vmlinuz, initrd.img and disk.img: a Debian on which LXD runs virtual
#                               machines under emulation, for hosts that cannot run any themselves
#
# The command in this directory boots the host. It hands over certificates by the firmware's configuration (fw_cfg), and
# waits for the line that lab-ready.service prints on the serial console.
#
# It needs root, in a mount namespace of its own, debootstrap and e2fsprogs; everything else is used from within the tree that it makes.
set -euo pipefail

what=${1:?guest or host} out=$(readlink -f "${2:?a directory}")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=examples/images/debian.sh
source "$here/../../../examples/images/debian.sh"
export PATH=$PATH:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive

guest_packages=(
  linux-image-amd64 # not the cloud kernel, which lacks 9p, and with it the agent
  initramfs-tools kmod busybox-static cpio lz4 binutils systemd-boot-efi syslinux syslinux-common mtools dosfstools e2fsprogs fdisk qemu-utils
)
host_packages=(
  systemd-sysv dbus udev iproute2
  lxd lxd-client lxd-agent dnsmasq-base nftables rsync btrfs-progs lvm2 thin-provisioning-tools gdisk
  qemu-system-x86 ovmf seabios
)

# tree ROOT PACKAGE... installs Debian into a directory.
tree() {
  local root=$1 mirror
  mirror=$(mirror)
  proxy
  say "fetching and unpacking Debian"
  debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >&2
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing is started while it is installed
  chmod +x "$root/usr/sbin/policy-rc.d"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe"
  # A small initrd is unpacked in a tenth of the time under emulation.
  mkdir -p "$root/etc/initramfs-tools/conf.d" "$root/usr/share/initramfs-tools/modules.d"
  printf 'MODULES=list\nCOMPRESS=lz4\nRESUME=none\n' >"$root/etc/initramfs-tools/conf.d/lab"
  printf '%s\n' virtio_blk virtio_pci ext4 crc32c_generic crc32c_intel >"$root/usr/share/initramfs-tools/modules.d/lab"
  chroot "$root" apt-get update -qq >&2
  say "installing its kernel and ${what}'s packages"
  chroot "$root" apt-get install -qq -y --no-install-recommends "${@:2}" >&2
  chroot "$root" apt-get clean
}

# unit ROOT NAME writes a systemd unit from standard input and enables it.
unit() {
  cat >"$1/etc/systemd/system/$2"
  chroot "$1" systemctl enable --quiet "$2"
}

# settle ROOT makes the tree boot by itself into an LXD that serves requests.
settle() {
  local root=$1
  echo nested >"$root/etc/hostname"
  printf '127.0.0.1 localhost nested\n' >"$root/etc/hosts"
  echo '/dev/vda / ext4 noatime 0 1' >"$root/etc/fstab"
  printf '%s\n' kvm_amd vhost_vsock vhost_net tun btrfs qemu_fw_cfg dm_thin_pool dm_snapshot >"$root/etc/modules-load.d/lab.conf"
  mkdir -p "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/system/lxd.service.d" "$root/opt/firmware"
  printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/lab.conf"

  # OVMF in a guest makes the emulator around this host abort. LXD starts whatever is called like it.
  cp "$root/usr/share/seabios/bios-256k.bin" "$root/opt/firmware/OVMF_CODE.fd"
  cp "$root/usr/share/OVMF/OVMF_VARS.fd" "$root/opt/firmware/"
  printf '[Service]\nEnvironment=LXD_OVMF_PATH=/opt/firmware\n' >"$root/etc/systemd/system/lxd.service.d/lab.conf"

  unit "$root" lab-network.service <<'UNIT'
[Unit]
Description=The address in the emulator's user network
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service
Before=network-online.target lxd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'ip link set lo up; ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up'
[Install]
WantedBy=multi-user.target network-online.target
UNIT
  # LXD keeps a certificate that is there already, so that a client knows its fingerprint beforehand.
  unit "$root" lab-certificates.service <<'UNIT'
[Unit]
Description=Certificates from the firmware's configuration
After=systemd-modules-load.service
Before=lxd.service
[Service]
Type=oneshot
RemainAfterExit=yes
WorkingDirectory=/sys/firmware/qemu_fw_cfg/by_name/opt/lab
ExecStart=/bin/sh -ec 'for f in server.crt server.key; do install -m 600 $$f/raw /var/lib/lxd/$$f; done; install -m 600 client.crt/raw /root/client.crt'
[Install]
WantedBy=multi-user.target
UNIT
  unit "$root" lab-ready.service <<'UNIT'
[Unit]
Description=Tell that LXD serves requests
Requires=lxd.service
After=lxd.service lab-network.service lab-certificates.service
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/sh -exc 'lxd waitready --timeout=120; lxc config trust add /root/client.crt; lxc config set core.https_address :8443; echo lab: ready'
[Install]
WantedBy=multi-user.target
UNIT
  chroot "$root" systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer btrfs-scrub.timer lxd-containers.service dnsmasq.service systemd-journal-flush.service
}

umask 022
work=$(mktemp -d "${TMPDIR:-/var/tmp}/nested.XXXXXXXX")
trap 'umount -q "$work/root/proc" || true; rm -rf --one-file-system "$work"' EXIT
packages=("${guest_packages[@]}")
[[ $what != host ]] || packages+=("${host_packages[@]}")
tree "$work/root" "${packages[@]}"

say "building the guest's image"
cp -r "$here/guest" "$work/root/tmp/guest"
cp "$here/../testdata/tiny/udhcpc.sh" "$work/root/tmp/guest/"
mount -t proc none "$work/root/proc"
chroot "$work/root" /tmp/guest/build.sh /tmp/guest/out >&2
umount "$work/root/proc"
mv "$work"/root/tmp/guest/out/guest.* "$out"
rm -r "$work/root/tmp/guest"

if [[ $what == host ]]; then
  settle "$work/root"
  say "packing the host's disk"
  cp "$work"/root/boot/vmlinuz-* "$out/vmlinuz"
  cp "$work"/root/boot/initrd.img-* "$out/initrd.img"
  truncate -s 24G "$out/disk.img"
  mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=1 -d "$work/root" "$out/disk.img"
fi
