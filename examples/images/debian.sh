#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Builds a small Debian image for LXD containers and prints the directory that holds it:
#
#   debian.sh [--force] [12|13]      debian-12.tar.xz (metadata) and debian-12.squashfs (root filesystem)
#
# The image is built once and then taken from the cache, until this script changes or --force is given.
# The packages come from the mirror that apt is configured with, or from LAB_DEBIAN_MIRROR. The same packages
# give the same bytes, so a rebuilt image keeps its fingerprint.
#
# Building needs root (sudo is used where that is not given) and, on the first run, installs debootstrap,
# squashfs-tools and xz-utils. All messages go to standard error.
set -euo pipefail
umask 022 # the image's own files get their modes under it

script=$(readlink -f "${BASH_SOURCE[0]}")
cache=${LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/terraform-provider-lab}/images

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "building an image needs root, and there is no sudo; run this as root: $script"
  fi
}

codename() {
  case $1 in
    12) echo bookworm ;;
    13) echo trixie ;;
    *) die "unknown Debian release '$1'; known are 12 and 13" ;;
  esac
}

# install_tools makes sure of the programs that build runs. It says what it installs, and why.
install_tools() {
  local missing=()
  command -v debootstrap >/dev/null || [[ -x /usr/sbin/debootstrap ]] || missing+=(debootstrap)
  command -v mksquashfs >/dev/null || missing+=(squashfs-tools)
  command -v xz >/dev/null || missing+=(xz-utils)
  [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
  ((${#missing[@]})) || return 0

  command -v apt-get >/dev/null || die "please install: ${missing[*]} (this script can do so only where there is apt-get)"
  say "installing ${missing[*]}, to build the image with"
  as_root apt-get update -qq >/dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# mirror prints the address of the Debian mirror that apt uses here. It prints nothing on a host that has none
# (Ubuntu, say): debootstrap then takes its own default.
mirror() {
  local uri
  if [[ -n ${LAB_DEBIAN_MIRROR:-} ]]; then
    echo "$LAB_DEBIAN_MIRROR"
    return
  fi

  uri=$(configured_mirror)
  if [[ -z $uri ]] && grep -qx ID=debian /etc/os-release; then
    as_root apt-get update -qq >/dev/null # only downloaded indexes tell whose they are
    uri=$(configured_mirror)
  fi

  case $uri in
    mirror+file:*) grep -m 1 -oE '(https?|file):[^[:space:]]+' "${uri#mirror+file:}" || true ;; # as in Debian's cloud images
    http:* | https:* | file:*) echo "$uri" ;;
  esac
}

# configured_mirror asks apt which of its sources is Debian's main archive: others may use Debian's codenames too.
configured_mirror() {
  # shellcheck disable=SC2016 # these are apt's variables, not the shell's
  apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ && uri == "" { uri = $4 } END { print uri }'
}

# proxy exports the proxy that apt is configured with: debootstrap's packages are often behind it, too.
proxy() {
  [[ -n ${http_proxy:-} ]] || eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
  [[ -z ${http_proxy:-} ]] || export http_proxy
}

# ---- as root, in a mount namespace of its own ------------------------------------------------------------------

# build RELEASE MIRROR DIRECTORY makes the two files of the image in DIRECTORY.
build() {
  local release=$1 mirror=$2 out=$3 suite epoch
  suite=$(codename "$release")
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/debian-$release.XXXXXXXX")
  trap 'rm -rf --one-file-system "$work"' EXIT

  proxy
  local packages=systemd-sysv,dbus,ifupdown,udhcpc,iproute2,iputils-ping,busybox
  say "fetching and unpacking Debian $release ($suite)"
  PATH=$PATH:/usr/sbin:/sbin debootstrap --variant=minbase --include="$packages" \
    "$suite" "$work/root" ${mirror:+"$mirror"} 2>&1 | tee "$work/log" | awk 'NR % 25 == 0 { print "  " $0; fflush() }' >&2 ||
    die "debootstrap failed; the end of what it said:"$'\n'"$(tail -n 20 "$work/log")"

  # The date of the archive's own index: new packages change it, a rebuild does not.
  epoch=$(date -d "$(sed -n '/^Date: /{s///p;q}' "$work"/root/var/lib/apt/lists/*_Release)" +%s)

  say "configuring"
  configure "$work/root"
  strip "$work/root" "$epoch"
  metadata "$work/metadata" "$release" "$epoch"

  say "packing"
  tar -C "$work/metadata" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -c . |
    xz -T1 >"$out/debian-$release.tar.xz"
  mksquashfs "$work/root" "$out/debian-$release.squashfs" -comp zstd -Xcompression-level 6 \
    -all-time "$epoch" -mkfs-time "$epoch" -no-progress -quiet >&2
  chown --reference="$out" "$out"/*
}

# configure ROOT: the network by DHCP, names by the DNS server that DHCP tells of (the bridge's), and nothing at boot
# that a container has no use for. ifupdown, since it makes the boot wait for an address and needs no udev, which
# networkd waits for and which would double the time that a boot takes.
configure() {
  local root=$1
  rm -f "$root/etc/resolv.conf" # the host's; udhcpc writes the guest's
  {
    printf 'auto lo /eth*\n'
    printf 'iface lo inet loopback\n'
    printf 'iface eth%d inet dhcp\n' 0 1 2 3
  } >"$root/etc/network/interfaces"
  chroot "$root" systemctl set-default --quiet multi-user.target
  chroot "$root" systemctl mask --quiet \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
    systemd-tmpfiles-clean.timer getty@.service console-getty.service systemd-logind.service \
    modprobe@.service systemd-modules-load.service systemd-remount-fs.service systemd-sysusers.service \
    systemd-journal-flush.service systemd-journal-catalog-update.service ldconfig.service systemd-update-done.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service
}

# strip ROOT EPOCH removes what a container does not need and what differs between two builds.
strip() {
  local root=$1 epoch=$2
  : >"$root/etc/machine-id" # empty: made anew at the first boot of each machine
  rm -rf "$root"/var/lib/dbus/machine-id "$root"/etc/hostname "$root"/etc/*- "$root"/etc/.pwd.lock \
    "$root"/var/lib/systemd/random-seed "$root"/var/lib/apt/lists/* "$root"/var/cache/{apt,ldconfig,debconf}/* \
    "$root"/var/log/* "$root"/var/lib/dpkg/*-old "$root"/var/cache/debconf/*-old \
    "$root"/usr/share/{man,info,locale,lintian}/* "$root"/run/* "$root"/tmp/*
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  find "$root/usr/share/doc" -type d -empty -delete
  # The day on which an account was made.
  sed -i -E "s/^(([^:]*:){2})[0-9]+:/\1$((epoch / 86400)):/" "$root/etc/shadow"
}

# metadata DIRECTORY RELEASE EPOCH writes what LXD wants to know about an image.
metadata() {
  local dir=$1 release=$2 epoch=$3
  mkdir -p "$dir/templates"
  cat >"$dir/metadata.yaml" <<YAML
architecture: $(uname -m)
creation_date: $epoch
properties:
  architecture: $(dpkg --print-architecture)
  description: Debian $release for labs
  os: Debian
  release: "$release"
templates:
  /etc/hostname:
    when: [create, copy]
    template: hostname.tpl
  /etc/hosts:
    when: [create, copy]
    template: hosts.tpl
YAML
  echo '{{ container.name }}' >"$dir/templates/hostname.tpl"
  printf '127.0.0.1\tlocalhost\n127.0.1.1\t{{ container.name }}\n::1\tlocalhost ip6-localhost ip6-loopback\n' \
    >"$dir/templates/hosts.tpl"
}

# ---- as whoever calls ------------------------------------------------------------------------------------------

main() {
  local force='' release=12 argument
  for argument; do
    case $argument in
      --force) force=yes ;;
      -h | --help) sed -n '4,13s/^# \{0,1\}//p' "$script"; exit ;;
      *) release=$argument ;;
    esac
  done
  codename "$release" >/dev/null

  local name=debian-$release image recipe
  image=$cache/$name
  recipe=$(sha256sum <"$script")
  mkdir -p "$cache"
  exec 9>"$cache/.$name.lock"
  flock -n 9 || { say "waiting for another run that builds the same image"; flock 9; }

  if [[ -z $force && $(cat "$image/.recipe" 2>/dev/null) == "$recipe" ]]; then
    echo "$image"
    return
  fi

  local mirror
  install_tools
  mirror=$(mirror)
  rm -rf "$cache/.$name".new.* # of a run that was killed: nobody else is here, under the lock
  new=$(mktemp -d "$cache/.$name.new.XXXXXXXX")
  trap 'rm -rf "$new"' EXIT
  # In a mount namespace of its own, what debootstrap mounts is gone whatever way it ends.
  as_root unshare --mount bash "$script" --build "$release" "$mirror" "$new" >&2
  echo "$recipe" >"$new/.recipe"
  chmod 755 "$new"
  rm -rf "$image"
  mv "$new" "$image"
  say "built $image ($(du -sh "$image" | cut -f 1))"
  echo "$image"
}

[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0 # read by another script, for its functions

if [[ ${1:-} == --build ]]; then
  build "${@:2}"
else
  main "$@"
fi
