-- Regions of the most users.
SELECT RegionID, count(DISTINCT UserID) AS users FROM hits GROUP BY RegionID ORDER BY users DESC, RegionID LIMIT 10
