-- Validity gates that a trial failed, and CPU profiles taken beside one.

ALTER TABLE sample ADD COLUMN gates_json TEXT;                     -- NULL where it passed all
ALTER TABLE sample ADD COLUMN profiled INTEGER NOT NULL DEFAULT 0; -- 1: a profiler ran meanwhile

CREATE TABLE profile (
    sample_id INTEGER NOT NULL REFERENCES sample (id) ON DELETE CASCADE,
    side      TEXT NOT NULL,             -- sender, receiver
    cores     REAL NOT NULL,             -- what the meter read over the same window
    data      TEXT NOT NULL,             -- folded stacks: gzip, base64
    PRIMARY KEY (sample_id, side)
) STRICT;
