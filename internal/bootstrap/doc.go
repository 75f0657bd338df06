// SPDX-License-Identifier: MPL-2.0

// Package bootstrap makes a clean Linux host capable of carrying a lab: a daemon that is installed, running, allowed
// to the person who asks, and able to copy on write.
//
// It works in rounds. A round looks at the host (look, read-only), compares what it finds with what a lab needs (plan,
// pure), and does the steps that are missing, each of which goes into a receipt. Rounds end when nothing is missing;
// a step that was done and is still missing is an error. At the end the capability is proved by using it. What
// touches the host goes through [Host], so that looking and planning are tested without one.
package bootstrap
