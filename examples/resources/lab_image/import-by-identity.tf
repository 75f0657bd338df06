import {
  to       = lab_image.debian
  identity = { fingerprint = "c50c0a25e6c37e59db1f9c1c856a9eb1b91abb161f2752e5a00c0a6dda25323f" }
}
