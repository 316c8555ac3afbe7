-- Items that bring about the same in all channels in a month.
WITH s AS (SELECT i_item_id AS id, sum(ss_ext_sales_price) AS revenue FROM store_sales, item, date_dim
  WHERE ss_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = date '[DATE]')) AND ss_sold_date_sk = d_date_sk GROUP BY i_item_id),
c AS (SELECT i_item_id AS id, sum(cs_ext_sales_price) AS revenue FROM catalog_sales, item, date_dim
  WHERE cs_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = date '[DATE]')) AND cs_sold_date_sk = d_date_sk GROUP BY i_item_id),
w AS (SELECT i_item_id AS id, sum(ws_ext_sales_price) AS revenue FROM web_sales, item, date_dim
  WHERE ws_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = date '[DATE]')) AND ws_sold_date_sk = d_date_sk GROUP BY i_item_id)
SELECT s.id, s.revenue AS store, s.revenue / ((s.revenue + c.revenue + w.revenue) / 3) * 100 AS store_share, c.revenue AS catalog, w.revenue AS web, (s.revenue + c.revenue + w.revenue) / 3 AS mean
FROM s, c, w WHERE s.id = c.id AND s.id = w.id AND s.revenue + c.revenue + w.revenue > 0 AND s.revenue BETWEEN 0.2 * c.revenue AND 5 * c.revenue AND s.revenue BETWEEN 0.2 * w.revenue AND 5 * w.revenue
  AND c.revenue BETWEEN 0.2 * w.revenue AND 5 * w.revenue
ORDER BY s.id, store LIMIT 100
