-- What held a trial's traffic back.

ALTER TABLE sample ADD COLUMN limited_by TEXT NOT NULL DEFAULT ''; -- empty where it is not known
