-- Checks that a trial failed and that leave its figures to count.

ALTER TABLE sample ADD COLUMN flags_json TEXT; -- NULL where there are none
