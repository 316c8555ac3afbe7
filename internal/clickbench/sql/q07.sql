-- The first and the last day.
SELECT min(EventDate) AS first_day, max(EventDate) AS last_day FROM hits
