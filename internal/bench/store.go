// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The files of a campaign.
const (
	manifestFile = "campaign.json"
	rowsFile     = "rows.jsonl"
	// ReportFile is the report, in Markdown.
	ReportFile = "report.md"
	lockFile   = ".lock"
)

// Manifest says what a campaign is and what it was run on.
type Manifest struct {
	Campaign string `json:"campaign"`
	// ID marks what the campaign makes on the daemon.
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Trials is how many were asked for of each subject, besides the warm-up.
	Trials   int               `json:"trials"`
	Settings map[string]string `json:"settings"`
	Subjects []Subject         `json:"subjects"`
	Host     Facts             `json:"host"`
	// Runs is how many runs it took: more than one where it was interrupted.
	Runs int `json:"runs"`
	// Complete says that every trial was tried and nothing was left behind.
	Complete bool `json:"complete"`
}

// store is the directory of a campaign.
type store struct {
	dir      string
	manifest Manifest
	rows     []Row
	file     *os.File
	lock     *flock.Flock
}

// openStore begins a campaign in a directory, or takes up the one that was interrupted there.
func openStore(campaign Campaign, options Options) (*store, error) {
	if err := os.MkdirAll(options.Dir, 0o750); err != nil {
		return nil, err
	}
	s := &store{dir: options.Dir, lock: flock.New(filepath.Join(options.Dir, lockFile))}
	if locked, err := s.lock.TryLock(); err != nil || !locked {
		return nil, errors.Join(fmt.Errorf("another run is measuring into %s", options.Dir), err)
	}
	if err := s.begin(campaign, options); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// begin reads what there is, and makes sure that it may be gone on with.
func (s *store) begin(campaign Campaign, options Options) (err error) {
	asked := Manifest{
		Campaign: campaign.Name(), ID: strings.ToLower(rand.Text()[:8]), Version: options.Version, Started: time.Now().UTC(),
		Trials: options.Trials, Settings: campaign.Settings(), Subjects: campaign.Subjects(), Host: options.Host,
	}
	s.manifest, s.rows, err = Load(s.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.manifest = asked
	case err != nil:
		return err
	case s.manifest.Complete:
		return fmt.Errorf("%s holds a complete campaign of %s: name another directory", s.dir, s.manifest.Started.Format(time.DateTime))
	default:
		if err := s.manifest.same(&asked); err != nil {
			return fmt.Errorf("%s holds a campaign that was interrupted, and cannot be resumed: %w. Name another directory, or run it as before", s.dir, err)
		}
	}
	s.manifest.Runs++
	if err := s.write(); err != nil {
		return err
	}
	s.file, err = os.OpenFile(filepath.Join(s.dir, rowsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// same says what of the conditions has changed since a campaign was begun: figures taken under different ones must not
// be counted together.
func (m *Manifest) same(now *Manifest) error {
	var errs []error
	differs := func(what, was, is string) {
		if was != is {
			errs = append(errs, fmt.Errorf("%s was %q and is %q", what, was, is))
		}
	}
	differs("the campaign", m.Campaign, now.Campaign)
	differs("the version of this program", m.Version, now.Version)
	differs("the number of trials", fmt.Sprint(m.Trials), fmt.Sprint(now.Trials))
	for _, name := range slices.Sorted(maps.Keys(now.Settings)) {
		differs(name, m.Settings[name], now.Settings[name])
	}
	differs("the daemon", m.Host.Daemon, now.Host.Daemon)
	differs("the daemon's certificate", m.Host.Fingerprint, now.Host.Fingerprint)
	differs("the kernel", m.Host.Kernel, now.Host.Kernel)
	if !slices.Equal(m.Subjects, now.Subjects) {
		errs = append(errs, errors.New("what can be tried on this host has changed"))
	}
	return errors.Join(errs...)
}

// Load reads a campaign. The error is [os.ErrNotExist] where there is none.
func Load(dir string) (manifest Manifest, rows []Row, err error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return manifest, nil, err
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return manifest, nil, fmt.Errorf("%s in %s: %w", manifestFile, dir, err)
	}
	data, err = os.ReadFile(filepath.Join(dir, rowsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return manifest, nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var row Row
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return manifest, nil, fmt.Errorf("row %d of %s in %s: %w", len(rows)+1, rowsFile, dir, err)
		}
		rows = append(rows, row)
	}
	return manifest, rows, lines.Err()
}

// append keeps a row.
func (s *store) append(row Row) error {
	row.Run, row.Start = s.manifest.Runs, row.Start.UTC()
	s.rows = append(s.rows, row)
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// tried says whether a trial was done, well or badly. One that was interrupted was not.
func (s *store) tried(next turn) bool {
	return slices.ContainsFunc(s.rows, func(row Row) bool {
		return row.Kind == KindTrial && row.Subject == next.subject && row.Round == next.round && !row.Interrupted
	})
}

// left estimates how long trials will take, from those that are done.
func (s *store) left(todo []turn) (left time.Duration, known bool) {
	sum, count := map[string]int64{}, map[string]int64{}
	for i := range s.rows {
		if row := &s.rows[i]; row.Kind == KindTrial && !row.Interrupted {
			for _, of := range []string{row.Subject, ""} {
				sum[of] += row.Values[TookMS]
				count[of]++
			}
		}
	}
	if count[""] == 0 {
		return 0, false
	}
	for _, next := range todo {
		of := next.subject
		if count[of] == 0 {
			of = ""
		}
		left += time.Duration(sum[of]/count[of]) * time.Millisecond
	}
	return left, true
}

func (s *store) write() error {
	data, err := json.MarshalIndent(s.manifest, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, manifestFile), append(data, '\n'), 0o600)
}

// finish marks the campaign as complete.
func (s *store) finish() error {
	s.manifest.Complete = true
	return s.write()
}

// failed counts the trials that failed, the warm-up's too.
func (s *store) failed() (failed int) {
	for i := range s.rows {
		if row := &s.rows[i]; row.Kind == KindTrial && row.Error != "" && !row.Interrupted {
			failed++
		}
	}
	return failed
}

func (s *store) close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
	}
	return errors.Join(err, s.lock.Unlock())
}
