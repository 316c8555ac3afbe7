-- Three aggregates of all rows.
SELECT sum(AdvEngineID) AS engines, count(*) AS views, avg(ResolutionWidth) AS width FROM hits
