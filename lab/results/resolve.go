package results

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
)

// Latest names the newest run.
const Latest = "latest"

// resolve returns the ID of the run that name stands for.
func resolve(t *tx, name string) (string, error) {
	runs, err := listNames(t)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", withCause(ErrUnknownRun, "the store has no run yet; `windtunnel run quick` makes the first")
	}
	if name == "" || name == Latest {
		return runs[0].id, nil
	}
	newest := strings.TrimSuffix(name, "@"+Latest)
	var named, begins []string
	for _, r := range runs {
		switch {
		case r.id == name:
			return r.id, nil
		case r.name != "" && r.name == newest:
			named = append(named, r.id)
		case strings.HasPrefix(r.id, name):
			begins = append(begins, r.id)
		}
	}
	switch {
	case len(named) == 1 || len(named) > 1 && newest != name:
		return named[0], nil
	case len(named) > 1:
		return "", withCause(ErrUnknownRun, "%d runs have this name: %s; %s@latest is the newest of them, or give an ID", len(named), some(named), name)
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) > 1:
		return "", withCause(ErrUnknownRun, "the IDs of %d runs begin with this: %s; give more of the ID", len(begins), some(begins))
	}
	return "", unknownName(runs, newest)
}

// runName has the two names of a run.
type runName struct{ id, name string }

// listNames lists every run, newest first.
func listNames(t *tx) (runs []runName, err error) {
	err = t.each("SELECT id, name FROM run ORDER BY started DESC, id DESC", nil, func(rows *sql.Rows) error {
		var r runName
		err := rows.Scan(&r.id, &r.name)
		runs = append(runs, r)
		return err
	})
	return runs, err
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
	runs, err := listNames(t)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return withCause(ErrUnknownRun, "the store has no run")
	}
	return unknownName(runs, runID)
}

// unknownName returns the error for a name that is not the name of a run. The error
// lists similar names and IDs. runs are those of the store, newest first.
func unknownName(runs []runName, name string) error {
	var known []string
	for _, r := range runs {
		if known = append(known, r.id); r.name != "" && !slices.Contains(known, r.name) {
			known = append(known, r.name)
		}
	}
	return withCause(ErrUnknownRun, "there is no run of this name; similar runs: %s", some(nearest(known, name, distance)))
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
