-- Times are UTC, RFC 3339 with nine decimals, so that text order is time order.
-- Columns ending in _json hold what the Go type of lab/sample or lab/suite
-- marshals to.

CREATE TABLE run (
    id               TEXT PRIMARY KEY,
    suite            TEXT NOT NULL,
    title            TEXT NOT NULL,
    started          TEXT NOT NULL,
    finished         TEXT,               -- NULL while running or after a kill
    seed             TEXT NOT NULL,      -- unsigned 64 bits, decimal
    status           TEXT NOT NULL,
    environment_json TEXT NOT NULL,
    plan_json        TEXT NOT NULL
) STRICT;

CREATE INDEX run_by_start ON run (started);

CREATE TABLE skip (
    run_id   TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    scenario TEXT NOT NULL,
    reason   TEXT NOT NULL,
    PRIMARY KEY (run_id, scenario)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
    id              INTEGER PRIMARY KEY,
    run_id          TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    scenario        TEXT NOT NULL,
    block           INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    started         TEXT NOT NULL,
    took_ns         INTEGER NOT NULL,
    failure_kind    TEXT,                -- NULL where the trial yielded figures
    failure_message TEXT,
    latency         TEXT,                -- HdrHistogram V2 compressed, base64, ns
    series_json     TEXT,
    hops_json       TEXT,
    warnings_json   TEXT,
    commands_json   TEXT
) STRICT;

CREATE INDEX sample_by_trial ON sample (run_id, scenario, block, attempt);

CREATE TABLE metric (
    sample_id INTEGER NOT NULL REFERENCES sample (id) ON DELETE CASCADE,
    metric    TEXT NOT NULL,             -- a name of lab/sample
    value     REAL NOT NULL,             -- in the unit that the name ends in
    PRIMARY KEY (sample_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE output (
    sample_id   INTEGER NOT NULL REFERENCES sample (id) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,        -- in the order of the processes
    role        TEXT NOT NULL,
    exit        INTEGER NOT NULL,        -- -1 where a signal ended it
    stdout_zstd BLOB NOT NULL,
    stderr_zstd BLOB NOT NULL,
    PRIMARY KEY (sample_id, ordinal)
) STRICT;
