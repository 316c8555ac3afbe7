-- Addresses that have a word.
SELECT count(*) AS views FROM hits WHERE URL LIKE '%google%'
