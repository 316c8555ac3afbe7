-- Returns of items in the months of three days, by all channels, and their shares.
WITH s AS (SELECT i_item_id AS id, sum(sr_return_quantity) AS quantity FROM store_returns, item, date_dim
  WHERE sr_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq IN (SELECT d_month_seq FROM date_dim WHERE d_date IN ('[DATE1]', '[DATE2]', '[DATE3]')))
    AND sr_returned_date_sk = d_date_sk GROUP BY i_item_id),
c AS (SELECT i_item_id AS id, sum(cr_return_quantity) AS quantity FROM catalog_returns, item, date_dim
  WHERE cr_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq IN (SELECT d_month_seq FROM date_dim WHERE d_date IN ('[DATE1]', '[DATE2]', '[DATE3]')))
    AND cr_returned_date_sk = d_date_sk GROUP BY i_item_id),
w AS (SELECT i_item_id AS id, sum(wr_return_quantity) AS quantity FROM web_returns, item, date_dim
  WHERE wr_item_sk = i_item_sk AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq IN (SELECT d_month_seq FROM date_dim WHERE d_date IN ('[DATE1]', '[DATE2]', '[DATE3]')))
    AND wr_returned_date_sk = d_date_sk GROUP BY i_item_id)
SELECT s.id, s.quantity AS store, s.quantity / nullif(s.quantity + c.quantity + w.quantity, 0.0) / 3.0 * 100 AS store_share, c.quantity AS catalog,
  c.quantity / nullif(s.quantity + c.quantity + w.quantity, 0.0) / 3.0 * 100 AS catalog_share, w.quantity AS web, (s.quantity + c.quantity + w.quantity) / 3.0 AS mean
FROM s, c, w WHERE s.id = c.id AND s.id = w.id ORDER BY s.id, store LIMIT 100
