-- Ninety sums over one column.
SELECT [SUMS] FROM hits
