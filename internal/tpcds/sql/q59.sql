-- Weekdays of stores against the same week of the next year.
WITH weeks AS (SELECT d_week_seq, ss_store_sk, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sun, sum(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price END) AS tue,
    sum(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price END) AS thu, sum(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price END) AS sat
  FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY d_week_seq, ss_store_sk)
SELECT y.name, y.id, y.week, y.sun / nullif(z.sun, 0) AS sun, y.tue / nullif(z.tue, 0) AS tue, y.thu / nullif(z.thu, 0) AS thu, y.sat / nullif(z.sat, 0) AS sat
FROM (SELECT s_store_name AS name, w.d_week_seq AS week, s_store_id AS id, sun, tue, thu, sat FROM weeks w, store, date_dim d
    WHERE d.d_week_seq = w.d_week_seq AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND d_dow = 3) y,
  (SELECT s_store_name AS name, w.d_week_seq AS week, s_store_id AS id, sun, tue, thu, sat FROM weeks w, store, date_dim d
    WHERE d.d_week_seq = w.d_week_seq AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN [MSEQ] + 12 AND [MSEQ] + 23 AND d_dow = 3) z
WHERE y.id = z.id AND y.week = z.week - 52 ORDER BY y.name, y.id, y.week, 4, 5, 6, 7 LIMIT 100
