-- Sites of the longest referring addresses.
SELECT regexp_replace(Referer, '^https?://(www[.])?([^/]+)/.*$', '\2') AS site, avg(length(Referer)) AS letters, count(*) AS views, min(Referer) AS first_referer
FROM hits WHERE Referer != '' GROUP BY site HAVING count(*) > [MANY] ORDER BY letters DESC, site LIMIT 25
