package results

import "windtunnel/lab/sample"

// loadProfiles reads the profiles of all samples.
func (d *RunData) loadProfiles(t *tx) error {
	rows, err := t.Query(`SELECT sample_id, side, cores, data FROM profile
		WHERE sample_id IN (SELECT id FROM sample WHERE run_id = ?) ORDER BY sample_id, side DESC`, d.Run.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	index := make(map[int64]int, len(d.IDs))
	for i, id := range d.IDs {
		index[id] = i
	}
	for rows.Next() {
		var id int64
		var p sample.Profile
		if err := rows.Scan(&id, &p.Side, &p.Cores, &p.Data); err != nil {
			return err
		}
		s := &d.Samples[index[id]]
		s.Profiles = append(s.Profiles, p)
	}
	return rows.Err()
}
