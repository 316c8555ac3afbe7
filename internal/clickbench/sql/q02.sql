-- Rows that came by an advertisement.
SELECT count(*) AS advertised FROM hits WHERE AdvEngineID != 0
