// SPDX-License-Identifier: MPL-2.0

// Package lxd talks to one LXD (or Incus) daemon.
//
// It is a thin layer over the official client that adds what a provider needs and the client lacks: discovery that
// never guesses past a dead socket, errors with a kind, changes that are waited for whether the daemon answers at
// once or with an operation, calls that end with their context, and a lock per machine.
package lxd
