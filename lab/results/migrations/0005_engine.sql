-- The process that measures a run, and the choices besides its plan that a
-- resumed run keeps. A run of an earlier version has neither.

ALTER TABLE run ADD COLUMN engine TEXT;       -- boot id, process id and its start in ticks; whose status is "running" though this process is gone was killed
ALTER TABLE run ADD COLUMN options_json TEXT;
