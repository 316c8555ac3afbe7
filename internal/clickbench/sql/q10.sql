-- Regions of the most views, with their users.
SELECT RegionID, sum(AdvEngineID) AS engines, count(*) AS views, avg(ResolutionWidth) AS width, count(DISTINCT UserID) AS users
FROM hits GROUP BY RegionID ORDER BY views DESC, RegionID LIMIT 10
