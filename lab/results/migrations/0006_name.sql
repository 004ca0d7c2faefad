-- The user's name of a run, which several runs can have, and the user's note.
-- The first finding of its report, for lists.

ALTER TABLE run ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN headline TEXT NOT NULL DEFAULT ''; -- empty until the report is made
