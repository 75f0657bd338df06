// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Host is the machine: its commands, its files, and the daemon behind a socket.
type Host interface {
	// Run runs a program to its end and gives what it printed. The error of one that failed is a [CommandError].
	Run(ctx context.Context, c Command) (string, error)
	// Start starts a program that outlives this one, with its output appended to the file log. What it ended with comes
	// through the channel if it ends before this process does.
	Start(ctx context.Context, c Command, log string) (<-chan error, error)
	// ReadFile reads a file.
	ReadFile(path string) ([]byte, error)
	// Exists says whether a path exists.
	Exists(path string) bool
	// OwningGroup gives the id of the group that owns a file.
	OwningGroup(path string) (int, error)
	// Find gives the path of a program of the system, or nothing.
	Find(program string) string
	// Getenv gives a variable of this process's environment.
	Getenv(name string) string
	// Invoker is the person that this process runs for.
	Invoker() (Invoker, error)
	// Ask reads what the daemon at an address says of itself.
	Ask(ctx context.Context, address string) (Server, error)
	// TryPool makes a small pool with a driver on the daemon, and removes it.
	TryPool(ctx context.Context, address, driver string) error
}

// Invoker is the person that this process runs for.
type Invoker struct {
	// Root says that the process is root's.
	Root bool
	// User is the person's name: who called sudo, else the owner of the process.
	User string
	// Groups are the ids of the groups that the process is in.
	Groups []int
}

// Server is what a daemon says of itself.
type Server struct {
	// Product and Version say which software it is.
	Product, Version string
	// Drivers are the storage drivers that it offers.
	Drivers []string
	// PID is its process.
	PID int
}

// Command is a program to run.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env is added to this process's environment.
	Env []string
	// Status, if it is not nil, receives each line that the program writes to its descriptor 3.
	Status func(line string)
}

func (c Command) String() string {
	quoted := make([]string, 0, len(c.Env)+len(c.Args))
	for _, word := range append(append([]string{}, c.Env...), c.Args...) {
		quoted = append(quoted, Quote(word))
	}
	return strings.Join(quoted, " ")
}

// Quote makes one word for a shell of a string.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=/.,:+@%", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CommandError is a program that failed.
type CommandError struct {
	// Command is what was run.
	Command Command
	// Output is what it printed.
	Output string
	// Err says how it ended.
	Err error
}

func (e *CommandError) Error() string {
	text := fmt.Sprintf("`%s`: %v", Command{Args: e.Command.Args}, e.Err)
	if last := lastLines(e.Output, 15); last != "" {
		text += "; the end of what it said:\n" + last
	}
	return text
}

func (e *CommandError) Unwrap() error { return e.Err }

// printed gives the output of a failed program, or nothing.
func printed(err error) string {
	if failed, ok := errors.AsType[*CommandError](err); ok {
		return failed.Output
	}
	return ""
}

// lastLines gives the last n lines of a text, without the line break at the end.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
