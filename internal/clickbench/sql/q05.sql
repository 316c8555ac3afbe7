-- Different users.
SELECT count(DISTINCT UserID) AS users FROM hits
