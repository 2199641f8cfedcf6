ALTER TABLE run ADD COLUMN g AS (hex(zeroblob(took_s*1e9)));
