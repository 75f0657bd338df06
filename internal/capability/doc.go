// SPDX-License-Identifier: MPL-2.0

// Package capability says what a host can do, on evidence, and refuses what it cannot.
//
// It works in four steps. Facts are what a daemon says of itself: a few reads, cached, never a change on the host.
// Probes do the operation in question with throw-away objects and measure it. Verdicts come from either, and say
// which. Refusals are verdicts that stand in the way of something that was asked for: they name the argument, what
// was asked, what was found, and what would help.
//
// A listed driver, a tool on PATH or a device node proves nothing. Only a probe gives the verdict [Proven].
package capability
