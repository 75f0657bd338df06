// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DefaultReceipt is the file that says what was changed on a host.
const DefaultReceipt = "/var/lib/terraform-provider-lab/receipt.jsonl"

// Entry is a step that was done, as it stands in the receipt: one JSON object in a line.
type Entry struct {
	// Time is when the step ended.
	Time time.Time `json:"time"`
	// Step and Title say what was done, and Reasons why.
	Step    string   `json:"step"`
	Title   string   `json:"title"`
	Reasons []string `json:"reasons"`
	change
	// DurationMS is how long it took, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Error says why the step failed; it may have changed something all the same.
	Error string `json:"error,omitempty"`
}

// record appends an entry to a receipt.
func record(path string, entry Entry) (err error) {
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("write the receipt %s: %w", path, err)
	}
	if err := makeDirFor(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // everybody may read what was changed
	if err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// One write of one line, so that entries of two runs cannot mix.
	if _, err := file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	return file.Sync()
}

// makeDirFor makes the directory of a file.
func makeDirFor(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // everybody may read what was changed
		return fmt.Errorf("make a place for the receipt: %w", err)
	}
	return nil
}
