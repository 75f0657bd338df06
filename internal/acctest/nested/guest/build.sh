#!/bin/bash
# SPDX-License-Identifier: MPL-2.0
#
# Builds an image of a virtual machine from the kernel and the busybox of the Debian that it runs in:
#
#   build.sh DIRECTORY     writes guest.tar.gz (metadata) and guest.qcow2 (disk) into it
#
# The disk boots by the MBR and syslinux, and by a unified kernel image for UEFI, which is not signed.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
out=$1
kernel=$(basename /lib/modules/*)
work=$(mktemp -d)
cd "$work"
mkdir -p "$out"

# In the order in which they are loaded. The agent talks over vsock, and is itself fetched over 9p.
modules=(
  virtio_pci virtio_scsi sd_mod crc32c_generic ext4 9p 9pnet_virtio vmw_vsock_virtio_transport virtio_console
  virtio_rng virtio_net virtio_balloon
)

initrd() {
  local module path
  mkdir -p initrd/{bin,dev,proc,sys,new,modules}
  cp /bin/busybox initrd/bin/
  ln -s busybox initrd/bin/sh
  for module in "${modules[@]}"; do
    modprobe --set-version "$kernel" --show-depends "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >paths
  while read -r path; do
    cp "$path" initrd/modules/
    basename "$path" >>initrd/modules/order
  done <paths
  install -m 755 "$here/init" initrd/init
  (cd initrd && find . | cpio --quiet -o -H newc -R 0:0) | lz4 -lq9 >initrd.lz4
}

root() {
  local applet
  mkdir -p root/{bin,dev,etc,mnt,proc,root,run,sbin,sys,tmp,usr/bin,usr/sbin,var}
  cp /bin/busybox root/bin/
  for applet in $(busybox --list); do
    [[ $applet == busybox ]] || ln -s busybox "root/bin/$applet"
  done
  ln -s ../bin/busybox root/sbin/init
  ln -s /bin/busybox root/usr/bin/env
  echo 'root:x:0:0:root:/root:/bin/sh' >root/etc/passwd
  echo 'root:x:0:' >root/etc/group
  printf 'NAME=tiny\nID=tiny\nVERSION_ID=1\n' >root/etc/os-release
  : >root/etc/machine-id
  install -m 644 "$here/inittab" root/etc/inittab
  install -m 755 "$here/rc" "$here/agent" "$here/udhcpc.sh" root/etc/
  truncate -s 48M root.img
  mkfs.ext4 -qFL root -d root root.img
}

# boot makes the system partition, for either firmware.
boot() {
  local image
  image=$(echo /boot/vmlinuz-*)
  printf 'console=ttyS0 quiet mitigations=off nokaslr audit=0 nowatchdog no5lvl panic=5' >cmdline
  printf 'DEFAULT l\nPROMPT 0\nTIMEOUT 0\nLABEL l\n LINUX vmlinuz\n INITRD initrd\n APPEND %s\n' "$(cat cmdline)" >syslinux.cfg
  objcopy --add-section .osrel=root/etc/os-release --change-section-vma .osrel=0x20000 \
    --add-section .cmdline=cmdline --change-section-vma .cmdline=0x30000 \
    --add-section .linux="$image" --change-section-vma .linux=0x2000000 \
    --add-section .initrd=initrd.lz4 --change-section-vma .initrd=0x3000000 \
    /usr/lib/systemd/boot/efi/linuxx64.efi.stub unified.efi
  truncate -s 34M boot.img
  mkfs.vfat -n BOOT boot.img >/dev/null
  syslinux --install boot.img
  mcopy -i boot.img syslinux.cfg ::
  mcopy -i boot.img "$image" ::vmlinuz
  mcopy -i boot.img initrd.lz4 ::initrd
  mmd -i boot.img ::EFI ::EFI/BOOT
  mcopy -i boot.img unified.efi ::EFI/BOOT/BOOTX64.EFI
}

initrd
root
boot
truncate -s 85M disk.img
sfdisk -q disk.img <<'TABLE'
label: gpt
start=2048, size=69632, type=uefi, attrs=LegacyBIOSBootable
start=71680, size=98304, type=linux
TABLE
dd if=boot.img of=disk.img bs=1M seek=1 conv=notrunc status=none
dd if=root.img of=disk.img bs=1M seek=35 conv=notrunc status=none
dd if=/usr/lib/syslinux/mbr/gptmbr.bin of=disk.img bs=440 count=1 conv=notrunc status=none
qemu-img convert -O qcow2 disk.img "$out/guest.qcow2"
cat >metadata.yaml <<'YAML'
architecture: x86_64
creation_date: 1700000000
properties: {os: tiny, description: busybox in a virtual machine for acceptance tests}
YAML
tar -czf "$out/guest.tar.gz" metadata.yaml
