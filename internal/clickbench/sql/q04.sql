-- The average of numbers whose sum 64 bits do not hold.
SELECT avg(UserID) AS mean FROM hits
