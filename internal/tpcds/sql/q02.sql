-- Sales of weekdays, week by week, against those of the next year.
WITH sold AS (SELECT ws_sold_date_sk AS day, ws_ext_sales_price AS price FROM web_sales UNION ALL SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales),
weeks AS (SELECT d_week_seq AS week, sum(CASE WHEN d_day_name = 'Sunday' THEN price END) AS sun, sum(CASE WHEN d_day_name = 'Monday' THEN price END) AS mon,
    sum(CASE WHEN d_day_name = 'Wednesday' THEN price END) AS wed, sum(CASE WHEN d_day_name = 'Friday' THEN price END) AS fri,
    sum(CASE WHEN d_day_name = 'Saturday' THEN price END) AS sat
  FROM sold, date_dim WHERE d_date_sk = day GROUP BY d_week_seq)
SELECT this.week, round(this.sun / nullif(next.sun, 0), 2) AS sun, round(this.mon / nullif(next.mon, 0), 2) AS mon, round(this.wed / nullif(next.wed, 0), 2) AS wed,
  round(this.fri / nullif(next.fri, 0), 2) AS fri, round(this.sat / nullif(next.sat, 0), 2) AS sat
FROM (SELECT DISTINCT w.* FROM weeks w, date_dim WHERE d_week_seq = w.week AND d_year = [YEAR]) this,
  (SELECT DISTINCT w.* FROM weeks w, date_dim WHERE d_week_seq = w.week AND d_year = [YEAR] + 1) next
WHERE this.week = next.week - 53 ORDER BY this.week
