package results

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
)

// Latest names the newest run.
const Latest = "latest"

// resolve returns the ID of the run that name stands for.
func resolve(t *tx, name string) (string, error) {
	ids, err := runIDs(t)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", withCause(ErrUnknownRun, "the store has no run yet; `windtunnel run quick` makes the first")
	}
	if name == "" || name == Latest {
		return ids[0], nil
	}
	var matches []string
	for _, id := range ids {
		if id == name {
			return id, nil
		}
		if strings.HasPrefix(id, name) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return "", unknownName(ids, name)
	}
	return "", withCause(ErrUnknownRun, "the IDs of %d runs begin with this: %s; give more of the ID", len(matches), some(matches))
}

// runIDs lists every run, newest first.
func runIDs(t *tx) ([]string, error) {
	rows, err := t.Query("SELECT id FROM run ORDER BY started DESC, id DESC")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// mustExist returns an error if no run has exactly this ID. No other process changes the
// run until the transaction ends.
func mustExist(t *tx, runID string) error {
	var id string
	err := t.QueryRow("SELECT id FROM run WHERE id = ?"+t.dialect.lockRow(), runID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return unknownRun(t, runID)
	}
	return err
}

func unknownRun(t *tx, runID string) error {
	ids, err := runIDs(t)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return withCause(ErrUnknownRun, "the store has no run")
	}
	return unknownName(ids, runID)
}

// unknownName returns the error for a name that is not the name of a run. The error
// lists runs with similar IDs. ids are the runs of the store, newest first.
func unknownName(ids []string, name string) error {
	return withCause(ErrUnknownRun, "there is no run of this name; similar runs: %s", some(nearest(ids, name, distance)))
}

// mostCompared is the number of bytes of a name that are compared with the runs' IDs. The time
// of a comparison grows with the length.
const mostCompared = 64

// nearest returns the IDs in the order of their distance to name.
func nearest(ids []string, name string, distance func(id, name string) int) []string {
	name = name[:min(len(name), mostCompared)]
	distances := make(map[string]int, len(ids))
	for _, id := range ids {
		distances[id] = distance(id, name)
	}
	return slices.SortedStableFunc(slices.Values(ids), func(a, b string) int { return cmp.Compare(distances[a], distances[b]) })
}

func some(ids []string) string {
	const most = 3
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + ", …"
}

// distance returns the edits between name and id, or between name and a prefix
// or suffix of id of the same length. So a misspelt suite name is near to the
// runs of that suite.
func distance(id, name string) int {
	n := min(len(id), len(name))
	return min(phrase.Distance(id, name), phrase.Distance(id[:n], name), phrase.Distance(id[len(id)-n:], name))
}
