resource "lab_storage_pool" "cow" {
  name = "lab"
}

resource "lab_network" "net" {
  name = "labnet"
}

resource "lab_image" "debian" {
  file = { metadata = "debian-12.tar.xz", rootfs = "debian-12.squashfs" }
}

resource "lab_machine" "web" {
  name     = "web"
  image    = lab_image.debian.fingerprint
  pool     = lab_storage_pool.cow.id
  cpus     = 1
  memory   = "512MiB"
  networks = { eth0 = { network = lab_network.net.id } }

  files = {
    "/srv/index.html" = { content = "hello\n" }
    "/etc/systemd/system/web.service" = {
      content = <<-EOT
        [Service]
        ExecStart=/bin/busybox httpd -f -h /srv
        [Install]
        WantedBy=multi-user.target
      EOT
    }
  }
  setup = [{ command = ["systemctl", "enable", "--now", "web.service"] }]

  # It counts as usable when its page can be had from here.
  ready = { tcp_port = 80 }
}
